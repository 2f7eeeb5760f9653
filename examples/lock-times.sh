#!/bin/sh
# How long it takes to lock a run, by how much plaintext it has: sh examples/lock-times.sh [MiB ...]
# Needs target/release/casemate and casemate-traps; prints, for each size, the first lock and one
# after which the program did nothing, in milliseconds, and the unlock.
set -eu
bin=$(dirname "$0")/../target/release
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
echo passphrase > "$scratch/passphrase"
"$bin/casemate" lock --make-key "$scratch/key" --passphrase-file "$scratch/passphrase" > "$scratch/out"
took() { sed -n 's/.*"elapsed_ms": *\([0-9.]*\).*/\1/p'; }
[ $# -gt 0 ] || set -- 64 512 2048
for mib; do
    # The program sleeps until its input ends.
    sleep 60 | "$bin/casemate" run -q --clear 8G -- "$bin/casemate-traps" marker --mib "$mib" \
        --marker 00112233445566778899aabbccddeeff --seconds 60 > "$scratch/out" &
    run=$!
    until grep -q ready "$scratch/out"; do sleep 0.1; done
    printf '%s MiB' "$mib"
    for _ in 1 2; do
        printf ', locked in %s' "$("$bin/casemate" lock $run --key "$scratch/key" --json | took)"
        printf ', unlocked in %s' "$("$bin/casemate" unlock $run \
            --passphrase-file "$scratch/passphrase" --json | took)"
    done
    echo
    kill $run
    wait $run || true
done
