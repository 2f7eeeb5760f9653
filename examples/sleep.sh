#!/bin/sh
# Locks every run of Casemate before the machine sleeps. For /usr/lib/systemd/system-sleep/.
# Called by systemd-sleep(8) with "pre" or "post", and "suspend", "hybrid-sleep" or another word.
# CASEMATE and CASEMATE_KEY name the binary and the public key (casemate lock --make-key).
[ "$1" = pre ] || exit 0
exec "${CASEMATE:-casemate}" lock --all --key "${CASEMATE_KEY:-/etc/casemate.key}"
