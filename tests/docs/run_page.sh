#!/usr/bin/env bash
# run_page.sh PAGE.md PREFIX: does what a page tells a newcomer to do, word for word, in an empty folder, with the kiln that is
# installed at PREFIX. What a fenced block is for, its first line says:
#
#     ```sh            commands: run one block after the other in one shell, up to the first that fails
#     ```cpp name.cpp  a file of that name, whatever its language: written as it stands
#     ```text          right after commands: lines that those must have printed, in this order, whatever else they said; "..."
#                      stands for anything
#
# Any other block, such as ```cpp without a name, is there to be read. Pages say "${prefix:-/opt/kiln}" for where kiln is.
set -euo pipefail
page=$(realpath "$1")
export prefix=$2

work=$(mktemp -d)
running= # the line of the block whose commands run
finish() {
    status=$?
    if [ -n "$running" ]; then
        exec >&3 2>&4
        cat "$work/said"
        printf '%s:%s: the commands that begin here failed\n' "$page" "$running" >&2
    fi
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
mkdir "$work/empty" "$work/home" "$work/blocks"

# The page as a script: one call for each block, with its line in the page and the file that its text is now in.
awk -v blocks="$work/blocks" '
function begin(line,   words) {
    split(substr(line, 4), words, " ")
    kind = words[2] != "" ? "write_file" : words[1] == "sh" ? "run" : words[1] == "text" && last == "run" ? "compare" : ""
    name = words[2]
    block = blocks "/" NR
    start = NR + 1
    inside = 1
    printf "" >block
}
!inside && /^```/ { begin($0); next }
inside && /^```$/ {
    close(block)
    inside = 0
    last = kind
    if (kind == "run") printf "begin %d\n. %s\nend\n", start, block
    else if (kind != "") print kind, start, block, name
    next
}
inside { print >block; next }
/[^ ]/ { last = "" }
END { if (inside) { print "the block is never closed" | "cat >&2"; exit 1 } }
' "$page" >"$work/script"
grep -q '^begin ' "$work/script" || { echo "$page: there are no commands" >&2 && exit 1; }

write_file() { # line, text, name
    mkdir -p "$(dirname "$3")"
    cp "$2" "$3"
}

# Around commands, which run in this shell, so that folders and variables stay as they leave them.
begin() { # line
    printf '%s:%s\n' "${page##*/}" "$1"
    running=$1
    exec 3>&1 4>&2 >"$work/said" 2>&1
}
end() {
    exec >&3 2>&4
    running=
    cat "$work/said"
}

compare() { # line, expected
    local line said found
    exec 5<"$work/said"
    while IFS= read -r line; do
        found=
        while [ -z "$found" ] && IFS= read -r said <&5; do
            # shellcheck disable=SC2053 # it is a pattern
            [[ $said != $line ]] || found=yes
        done
        if [ -z "$found" ]; then
            printf '%s:%s: the commands before did not say, or not in this order: %s\n' "$page" "$1" "$line" >&2
            exit 1
        fi
    done < <(sed -e 's/[][*?\\]/\\&/g' -e 's/\.\.\./*/g' "$2")
    exec 5<&-
}

# Nothing of this environment but what a newcomer has: a machine that tools/setup made ready.
rocm=${KILN_ROCM_PREFIX:-${XDG_DATA_HOME:-$HOME/.local/share}/kiln/rocm}
for name in $(compgen -e KILN_) $(compgen -e XDG_); do
    unset "$name"
done
if [ -e "$rocm" ]; then
    export KILN_ROCM_PREFIX=$rocm
fi
export HOME=$work/home
cd "$work/empty"
# shellcheck source=/dev/null
. "$work/script"
