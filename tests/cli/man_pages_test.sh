#!/usr/bin/env bash
# man_pages_test.sh KILN: what formats manual pages has nothing to say against ours. 77: none of its kind is here.
set -euo pipefail
kiln=$1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$kiln" man-pages "$work/man1"

# Prints what the tools that are there complain of.
complaints() {
    local page=$1
    if command -v groff >/dev/null; then
        groff -man -ww -z -K utf8 "$page" 2>&1 || echo "$page: groff ends with $?"
    fi
    if command -v mandoc >/dev/null; then
        # A date would differ from one build to the next, so there is none.
        mandoc -T lint -W warning "$page" 2>&1 | grep -v 'missing date' || true
    fi
}

if ! command -v groff >/dev/null && ! command -v mandoc >/dev/null; then
    echo "skipped: neither groff nor mandoc is installed"
    exit 77
fi

# They do look: an unknown font and a request without its end are seen.
printf '.TH X 1 "" "x" "x"\n.SH NAME\nx \\- \\fZtext\\fR\n.if t \\{\n' >"$work/bad.1"
[ -n "$(complaints "$work/bad.1")" ] || { echo "a faulty page passes"; exit 1; }

said=$(for page in "$work"/man1/*.1; do complaints "$page"; done)
[ -z "$said" ] || { echo "$said"; exit 1; }
echo "$(find "$work/man1" -name '*.1' | wc -l) pages are well formed"
