#!/bin/sh
# Boots Linux in QEMU: it sorts and copies in its memory, forks while that runs short, and powers
# off. All of the guest's RAM, its kernel's included, is private memory of one process.
#   sh examples/guest.sh                               the guest alone
#   sh examples/guest.sh casemate run --clear 48M --   under casemate
# Needs qemu-system-x86, busybox-static, and a kernel: KERNEL=FILE, or the last of /boot, or the one
# that `cargo xtask packages` unpacks. RAM says how the guest gets its memory.
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
kernel=${KERNEL:-$(ls "$(dirname "$0")/../target/guest/vmlinuz" /boot/vmlinuz* 2> /dev/null |
  tail -n 1)}
[ -r "$kernel" ] || { echo "no kernel to boot; name one with KERNEL=FILE" >&2; exit 3; }
mkdir "$folder/bin" && cp /usr/bin/busybox "$folder/bin" || exit 1
cat > "$folder/init" << 'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /dev /work; mount -t devtmpfs none /dev && mount -t tmpfs -o size=90% none /work
cd /work || poweroff -f
seq 1 150000 > numbers
# More than fits beside the file: the guest's kernel takes memory back while these fork.
for child in 1 2 3 4; do
  ( sort -r numbers | sha256sum > sum.$child; cp numbers copy.$child ) &
done
wait
cat sum.*
for child in 1 2 3 4; do cmp numbers copy.$child && echo "child $child is right"; done
# The rest of the RAM, read back from the page cache.
dd if=/dev/urandom of=fill bs=1M count=40 2> /dev/null
[ "$(sha256sum < fill)" = "$(cat fill | sha256sum)" ] && echo "all of it is right"
poweroff -f
INIT
chmod +x "$folder/init"
(cd "$folder" && find bin init | /usr/bin/busybox cpio -o -H newc 2> /dev/null > initrd) || exit 1
"$@" qemu-system-x86_64 -accel tcg ${RAM:--m 128M} -smp 1 -nodefaults -display none -nic none \
  -serial stdio -no-reboot -append "console=ttyS0 loglevel=0 panic=-1" \
  -kernel "$kernel" -initrd "$folder/initrd"
