#!/usr/bin/env bash
# links.sh ROOT: every link of a page to a file of the project leads somewhere.
set -euo pipefail
cd "$1"
failed=0
while IFS= read -r page; do
    while IFS=: read -r line link; do
        target=$(dirname "$page")/${link%%#*}
        if [ ! -e "$target" ]; then
            printf '%s:%s: there is no %s\n' "$page" "$line" "$link" >&2
            failed=1
        fi
    done < <(grep -noE '\]\([^)#: ][^): ]*\)' "$page" | sed 's/:\](\(.*\))$/:\1/')
done < <(find . -name '*.md' -not -path './build/*' -not -path './.*/*' | sort)
exit $failed
