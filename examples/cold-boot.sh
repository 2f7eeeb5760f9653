#!/bin/sh
# What a cold boot finds: a protected program in a guest, whose whole physical memory is dumped from
# outside again and again, and searched for bytes that stand in each of the program's 8192 pages.
#   sh examples/cold-boot.sh MODE [SECONDS [DUMPS]]
#       for so many seconds after the program is ready (10), or until so many dumps were locked
# MODE: plain    without Casemate
#       run      in a Clear of 8 MiB, of 32
#       idle     in a Clear of 64 MiB: what is not touched for two seconds leaves
#       lock     in a Clear of 8 MiB, locked after 4 seconds
# Prints lines: mode,milliseconds,markers,keys (AES key schedules), and `locked` when that is done.
# Needs qemu-system-x86, busybox-static, and a kernel of 6.8 or later: KERNEL=FILE (Debian 12: that of
# the package linux-image-cloud-amd64 of its backports). CASEMATE and TRAPS name the two binaries.
mode=$1 seconds=${2:-10} enough=${3:-0}
marker=9d1f3c5a7b2e4860c1d3e5f708192a3b
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
casemate=${CASEMATE:-$top/target/release/casemate} traps=${TRAPS:-$top/target/release/casemate-traps}
case $mode in plain | run | idle | lock) ;; *) echo "usage: cold-boot.sh plain|run|idle|lock [SECONDS]" >&2; exit 2 ;; esac
kernel=${KERNEL:-/boot/vmlinuz}
[ -r "$kernel" ] || { echo "no kernel to boot; name one with KERNEL=FILE" >&2; exit 3; }
[ -x "$traps" ] || { echo "no $traps: cargo build --release -p casemate-traps" >&2; exit 3; }
# Argon2id wants 256 MiB while a key is made.
mib=256; [ "$mode" = lock ] && mib=704

folder=$(mktemp -d) || exit 1
qemu=
end() { [ -n "$qemu" ] && kill "$qemu" 2> /dev/null; rm -rf "$folder"; }
trap end EXIT
trap 'exit 1' INT TERM
mkdir -p "$folder/root/bin" "$folder/root/proc" "$folder/root/sys" "$folder/root/dev" \
  "$folder/root/tmp" || exit 1
cp /usr/bin/busybox "$folder/root/bin/busybox" || exit 1
cp "$casemate" "$folder/root/bin/casemate" && cp "$traps" "$folder/root/bin/traps" || exit 1
for library in $(ldd "$casemate" "$traps" | grep -o '/[^ :]*\.so[^ :]*' | sort -u); do
  mkdir -p "$folder/root$(dirname "$library")" && cp "$library" "$folder/root$library" || exit 1
done
cat > "$folder/root/init" << INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
export HOME=/tmp
mkfifo /tmp/input; sleep 100000 > /tmp/input &
program() { "\$@" /bin/traps marker --mib 32 --marker $marker < /tmp/input > /tmp/said 2>&1 & }
case $mode in
  plain) program ;;
  run | lock) program casemate run --clear 8M -- ;;
  idle) program casemate run --clear 64M --idle 2s -- ;;
esac
run=\$!
until grep -q ready /tmp/said; do
  sleep 0.1
  [ -d /proc/\$run ] || { echo "FAILED: \$(cat /tmp/said)"; poweroff -f; }
done
echo ready
if [ $mode = lock ]; then
  sleep 4
  echo 'correct horse battery staple' > /tmp/words
  casemate lock \$run --passphrase-file /tmp/words && echo locked
fi
sleep 100000
INIT
chmod +x "$folder/root/init"
(cd "$folder/root" && find . | /usr/bin/busybox cpio -o -H newc 2> /dev/null > ../initrd) || exit 1
rm -rf "$folder/root"

# Its monitor reads commands from a pipe. (QEMU 7.2 corrupts flags where it emulates cmpxchg16b.)
mkfifo "$folder/monitor" || exit 1
qemu-system-x86_64 -accel tcg -cpu Westmere,-cx16,+rdrand -m ${mib}M -smp 1 -nodefaults \
  -display none -nic none -no-reboot -serial file:"$folder/serial" -monitor stdio \
  -append "console=ttyS0 loglevel=3 panic=-1" -kernel "$kernel" -initrd "$folder/initrd" \
  < "$folder/monitor" > "$folder/log" 2>&1 &
qemu=$!
exec 9> "$folder/monitor"

# Milliseconds since the machine was started.
now() { read -r up _ < /proc/uptime; echo "$up" | awk '{ print int($1 * 1000) }'; }
said() { grep -q "^$1" "$folder/serial" 2> /dev/null; }

# The guest stands still while it is dumped.
dump() {
  rm -f "$folder/dump"
  echo stop >&9; echo "pmemsave 0 $((mib << 20)) \"$folder/dump\"" >&9; echo "info status" >&9
  until [ "$(grep -c "VM status" "$folder/log")" -gt "$dumps" ]; do
    kill -0 $qemu 2> /dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.02
  done
  dumps=$((dumps + 1))
}

is_over() {
  [ -n "$ready" ] && [ $dumps -ge 3 ] || return 1
  [ $enough -gt 0 ] && [ $locked -ge $enough ] || [ $(($(now) - ready)) -gt $((seconds * 1000)) ]
}

dumps=0 locked=0 ready=
until is_over; do
  kill -0 $qemu 2> /dev/null || { cat "$folder/serial" "$folder/log" >&2; exit 1; }
  if [ -z "$ready" ]; then
    said ready || { sleep 0.05; continue; }
    ready=$(now)
  fi
  at=$(($(now) - ready))
  said locked && { [ $locked -gt 0 ] || echo "locked"; locked=$((locked + 1)); }
  dump
  echo cont >&9
  "$casemate" audit --image "$folder/dump" --marker hex:$marker --json > "$folder/found"
  [ $? -le 1 ] || exit 1
  # The first count is the marker's, the others are those of keys, by their lengths.
  sed -n 's/^ *"count": \([0-9]*\).*/\1/p' "$folder/found" |
    awk -v of="$mode,$at" 'NR == 1 { found = $1 } NR > 1 { keys += $1 }
      END { print of "," found + 0 "," keys + 0 }'
done
