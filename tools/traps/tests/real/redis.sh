# A deterministic load, a background save while clients overwrite, and the saved file read back.
set -euo pipefail
cli() { redis-cli -s r.sock "$@"; }
start() {
    redis-server --port 0 --unixsocket r.sock --io-threads 2 --io-threads-do-reads yes --save "" \
        --appendonly no --dbfilename dump.rdb --enable-debug-command yes --logfile server.log &
    server=$!
    until_true 'cli info persistence | grep -q ^loading:0'
}
until_true() { # at most 120 s, and no longer than the server lives
    for _ in $(seq 1200); do
        if eval "$1" >/dev/null 2>&1; then return; fi
        kill -0 "$server"
        sleep 0.1
    done
    echo "not within 120 s: $1" >&2
    exit 1
}
trap 'kill "$server" 2>/dev/null || true' EXIT
start
cli --pipe <load.txt | tail -n 1
before=$(cli debug digest)
cli bgsave
redis-benchmark -s r.sock --dbnum 1 -q -n "$REQUESTS" -c 16 -r 50000 -d 300 \
    -t set,get,incr,lpush,sadd,hset >bench.log &
bench=$!
cli --pipe <change.txt | tail -n 1
until_true 'cli info persistence | grep -q rdb_bgsave_in_progress:0'
cli info persistence | grep rdb_last_bgsave_status | tr -d '\r'
wait "$bench"
cli -n 1 flushdb
echo "before the save $before"
echo "after the changes $(cli debug digest)"
cli shutdown nosave || true
wait "$server" || true
start
saved=$(cli debug digest)
echo "read back $saved"
cli shutdown nosave || true
wait "$server" || true
[ "$saved" = "$before" ]
