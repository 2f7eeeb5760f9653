#!/bin/sh
# Records a billion instructions of a Python program, and simulates them as a sample and in full.
#   sh examples/long-sample.sh [FOLDER]     with casemate in the PATH; some five minutes, 50 MB
# Needs python3 and qemu-x86_64.
folder=${1:-$(mktemp -d)}
cat > "$folder/dictionary.py" << 'END'
import random
random.seed(1)
entries = {}
for number in range(400000):
    entries[random.getrandbits(40)] = (number, str(number))
total = sum(entries[key][0] for key in sorted(entries))
names = sorted(name for _, name in entries.values())
print(total, names[7])
END
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
trace=$folder/dictionary.casetrace
casemate trace record --length 1000000000 --no-values -o "$trace" -- "$python" "$folder/dictionary.py" || exit 1
for how in "--sample 2000" ""; do
    start=$(date +%s)
    # shellcheck disable=SC2086 # nothing, or an option and its value
    casemate sim --trace "$trace" --preset modern --scheme none,aise+bmt $how || exit 1
    echo "$(($(date +%s) - start)) s"
done
