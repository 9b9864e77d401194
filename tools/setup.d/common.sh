# What the parts of tools/setup share. Sourced, not run.

say() { printf 'setup: %s\n' "$*"; }

# The environment lacks something: names it, then ends with the code that stands for that.
lacking() {
    printf 'setup: %s\n' "$@" >&2
    exit 3
}

as_root() { [ "$(id -u)" -eq 0 ]; }

have() { command -v "$1" >/dev/null 2>&1; }

# Another apt may hold the lists or the package database for a while; waiting is better than failing.
apt_patiently() {
    local log=$work/apt.log tries=0
    until LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 -o Acquire::http::Timeout=30 \
        -o Acquire::https::Timeout=30 "$@" >"$log" 2>&1 </dev/null; do
        grep -q 'Could not get lock' "$log" && [ "$tries" -lt 60 ] || return 1
        tries=$((tries + 1))
        [ "$tries" -gt 1 ] || say 'another apt is at work, waiting for it'
        sleep 5
    done
}

# The errors of the last apt, without the rest of what it says.
apt_errors() { grep -E '^(E|Err|W):' "$work/apt.log" | sed 's/^/  /' | tail -n "${1:-5}"; }
