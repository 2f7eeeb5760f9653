#!/bin/sh
# Has a program hold a secret, and looks for it from outside in the memory of all processes that
# belong to the run.
#   sh examples/marker.sh                               the program alone
#   sh examples/marker.sh casemate run --clear 4M --    under casemate
# Needs perl, and the right to read other processes' memory (root).
folder=$(dirname "$0")
coproc=$(mktemp -d) && mkfifo "$coproc/go" "$coproc/said" || exit 1
trap 'rm -rf "$coproc"' EXIT
"$@" perl "$folder/marker.pl" hold < "$coproc/go" > "$coproc/said" &
exec 3> "$coproc/go" 4< "$coproc/said"
read -r _ <&4 || exit 1
perl "$folder/marker.pl" find $!
echo go >&3
wait $!
