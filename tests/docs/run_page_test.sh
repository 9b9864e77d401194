#!/usr/bin/env bash
# run_page_test.sh RUN_PAGE: pages that are right pass, and each way to be wrong fails and names its line.
set -euo pipefail
run_page=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KILN_LOG=debug XDG_CACHE_HOME=/nonexistent

expect() { # status, what is said; the page is read from stdin
    local status=0 said
    sed 's/^    //' >"$work/page.md"
    said=$(bash "$run_page" "$work/page.md" /some/where 2>&1) || status=$?
    if ((status != $1)) || [[ $said != *"$2"* ]]; then
        printf 'expected status %s and "%s", found %s and:\n%s\n' "$1" "$2" "$status" "$said" >&2
        exit 1
    fi
}

expect 0 'page.md:16' <<'PAGE'
    A page.
    ```sh
    ls -A; echo "${KILN_LOG-no log} ${XDG_CACHE_HOME-no cache} ${prefix:-/opt/kiln}"
    mkdir inner && cd inner && value=kept
    ```
    ```text
    no log no cache /some/where
    ```
    ```c folder/one.c
    int one = 'a';
    ```
    ```c
    this is not run
    ```
    ```sh
    cat folder/one.c
    basename "$PWD"
    echo "$value [x] *"
    ```
    ```text
    int ... = 'a';
    inner
    kept [x] *
    ```
PAGE
expect 1 'page.md:2: the commands that begin here failed' <<'PAGE'
    ```sh
    false
    echo not reached
    ```
PAGE
expect 1 'page.md:6: the commands before did not say, or not in this order: first' <<'PAGE'
    ```sh
    echo first
    echo second
    ```
    ```text
    second
    first
    ```
PAGE
expect 1 'there are no commands' <<'PAGE'
    ```text
    nothing
    ```
PAGE
expect 1 'never closed' <<'PAGE'
    ```sh
    true
PAGE
