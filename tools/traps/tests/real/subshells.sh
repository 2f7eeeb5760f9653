set -e
text=$(head -c 6000000 /dev/zero | tr '\0' a)
for round in $(seq $((4 * SCALE))); do
  bash -c 'for part in 1 2 3 4; do
    (text=$(head -c 1000000 /dev/zero | tr "\0" b); (both=$text$text; echo "$part ${#both}"))
  done' | sort -u
done
echo ${#text}
