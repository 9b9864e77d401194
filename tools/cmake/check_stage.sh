#!/usr/bin/env bash
# check_stage.sh STAGE: every program and library of a stage needs nothing but libkiln beside it and the C library, no newer
# than that of Debian 12, and all of it is small enough to be carried around.
set -euo pipefail
stage=$1
newest=2.36
limit_mb=40

failed=0
complain() {
    echo "stage: $*" >&2
    failed=1
}

num_files=0
while IFS= read -r -d '' file; do
    [[ $(head -c 4 "$file") == $'\x7fELF' ]] || continue
    num_files=$((num_files + 1))
    dynamic=$(objdump -p "$file")
    while read -r library; do
        case $library in
            libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2 | libkiln.so.*) ;;
            *) complain "$file needs $library, which the other machine may not have" ;;
        esac
    done < <(awk '$1 == "NEEDED" { print $2 }' <<<"$dynamic")
    wanted=$(grep -o 'GLIBC_[0-9.]*' <<<"$dynamic" | sort -uV | tail -1)
    if [[ $(printf '%s\n' "GLIBC_$newest" "$wanted" | sort -V | tail -1) != "GLIBC_$newest" ]]; then
        complain "$file needs the C library's $wanted; expected none newer than $newest"
    fi
    while read -r folder; do
        [[ $folder == '$ORIGIN'* ]] || complain "$file looks for libraries in $folder, a place of this machine"
    done < <(awk '$1 == "RUNPATH" || $1 == "RPATH" { print $2 }' <<<"$dynamic")
done < <(find "$stage" -type f -print0)

((num_files >= 3)) || complain "expected libkiln, kiln and kiln-compile in $stage, found $num_files of that kind"
size_kb=$(du -sk --apparent-size "$stage" | cut -f 1)
((size_kb <= limit_mb * 1024)) || complain "$stage holds $size_kb kB; expected no more than $limit_mb MB"
((failed == 0)) && echo "stage: $num_files programs and libraries, $size_kb kB, in $stage"
exit "$failed"
