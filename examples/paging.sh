#!/bin/sh
# Records ten programs and runs their pages through every replacement policy: the table of
# docs/design/replacement.md. Takes an hour on two processors. Needs sqlite3, perl, python3, ruby,
# lua5.4, gcc, coreutils, zstd, xz-utils, redis-server and qemu-user.
# usage: sh examples/paging.sh FOLDER [casemate]
set -eu
folder=${1:?name a folder for the traces}
bin=$(cd "$(dirname "${2:-target/release/casemate}")" && pwd)
mkdir -p "$folder/redis/appendonlydir"
cd "$folder"

"$bin/casemate-workload" input c-source code.c --size 200K --seed 3
"$bin/casemate-workload" input archive archive.tar --size 4M --seed 1
"$bin/casemate-workload" input text text.txt --size 4M --seed 2
"$bin/casemate-workload" input redis-log redis/appendonlydir/appendonly.aof.1.incr.aof \
    --size 6M --seed 8
echo "file appendonly.aof.1.incr.aof seq 1 type i" > redis/appendonlydir/appendonly.aof.manifest
cat > dict.py <<'END'
import random
r=random.Random(1); d={}
for i in range(60000): d[r.randrange(1<<30)]=[i,str(i)]
k=list(d)
s=0
for _ in range(60000): s+=d[k[int(r.random()**3*len(k))]][0]
print(s)
END
cat > ledger.pl <<'END'
srand(3); my %h; for my $i (0..50000){ my $k=int(rand(40000)); $h{"acct$k"}+=$i;
push @{$h2{$k%997}},$i } my $s=0; for (sort keys %h){$s+=$h{$_}} print "$s\n";
END
cat > join.sql <<'END'
create table a(id integer primary key, k int, v text);
with recursive c(x) as (select 1 union all select x+1 from c where x<170000)
insert into a select x, (x*7919)%100003,
  'name'||x||'abcdefghijklmnopqrstabcdefghijklmnopqrstabcdefghijklmn' from c;
create index i on a(k);
select count(*) from a x join a y on x.k=y.k where y.id%7=0;
select sum(length(v)) from a where k in (select k from a where id%13=0);
update a set v=v||'z' where id%5=0;
END
cat > sort.lua <<'END'
local t={} local x=42
for i=1,60000 do x=(x*1103515245+12345)%2147483648 t[i]={k=x,s="n"..x} end
table.sort(t,function(a,b) return a.k<b.k end) print(t[1].k)
END
cat > hash.rb <<'END'
h={}; x=7
40000.times{|i| x=(x*1103515245+12345)%2147483648; h["k#{x}"]=[i,x.to_s]}
s=0; h.each{|k,v| s+=v[0]}
20000.times{|i| x=(x*1103515245+12345)%2147483648
h.delete(h.keys[0]) if i%5000==0; s+=1 if h["k#{x}"]}
puts s
END

# NAME LENGTH CMD...: `0` is the whole program.
record() {
    name=$1 length=$2
    shift 2
    [ -f "$name.casetrace" ] || "$bin/casemate" trace record --no-values -q --length "$length" \
        -o "$name.casetrace" -- "$@" > /dev/null < /dev/null
}
record cc1 400000000 "$(gcc -print-prog-name=cc1)" -quiet -O2 code.c -o /dev/null
record ruby 600000000 ruby --disable=gems hash.rb
record lua 400000000 lua5.4 sort.lua
record python 0 python3 dict.py
record perl 0 perl ledger.pl
record sqlite 0 sqlite3 :memory: ".read join.sql"
record sort 400000000 sort -S 100M --parallel=1 text.txt
record zstd 400000000 zstd -10 --single-thread -c archive.tar
record xz 400000000 xz -6 -T1 -c archive.tar
record redis 400000000 redis-server --port 0 --save "" --appendonly yes --dir "$PWD/redis"
"$bin/casemate" trace pages cc1.casetrace ruby.casetrace lua.casetrace python.casetrace \
    perl.casetrace sqlite.casetrace sort.casetrace zstd.casetrace xz.casetrace redis.casetrace
