#!/bin/bash
# Archives as people have them: .tar.bz2, .tar.xz and their short names, beside .tar.gz and .zip.
# Right: each is unpacked into a directory of its name; a damaged one is refused before anything starts.
. "$(dirname "$0")/../case.sh"
mkdir d && echo content > d/f
for ending in tar.bz2 tbz2 tar.xz txz; do
    python3 -c "import sys, tarfile; mode = 'w:bz2' if 'b' in sys.argv[1] else 'w:xz'
with tarfile.open('d.' + sys.argv[1], mode) as tar: tar.add('d/f', 'f')" "$ending"
    printf 'roles: {worker: {command: "cat got/f", resources: {memory: 64MiB}}}\narchives: ["d.%s#got"]\n' "$ending" > job.yaml
    run job.yaml
    [ "$status" = 0 ] && grep -q content out || fail "$ending: $status: $(tail -3 all)" "it is unpacked"
done
head -c 60 d.tar.xz > broken.tar.xz
printf 'roles: {worker: {command: "true", resources: {memory: 64MiB}}}\narchives: [broken.tar.xz]\n' > job.yaml
run job.yaml
[ "$status" = 66 ] && grep -q "broken.tar.xz is damaged, or no archive" all || fail "$status: $(cat all)" "refused, by its name"
pass
