# The packages of the private prefix, resolved and fetched by an apt with a state of its own. Sourced by tools/setup.

# The apt that resolves and downloads for the prefix: nothing of it touches the machine's own.
private_apt() { # apt-get's or apt-cache's arguments, after the program's name
    local program=$1 state=$work/apt
    shift
    LC_ALL=C "$program" -q \
        -o "Dir::Etc::sourcelist=$state/debian.sources" -o Dir::Etc::sourceparts=- -o "Dir::State::Lists=$state/lists" \
        -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache" -o "Dir::Cache::archives=$state/cache/archives" \
        -o APT::Install-Recommends=false -o APT::Sandbox::User=root -o Debug::NoLocking=true \
        -o APT::Update::Error-Mode=any -o Acquire::Languages=none \
        -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "$@" </dev/null
}

# Prints the addresses of the Debian archives that this machine's own sources name, in whichever format they stand.
debian_archives() { # apt's options
    LC_ALL=C apt-get indextargets "$@" --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^Debian|Debian|main|//p' | sort -u
}

# The machine's own sources with other suites. Where it has no package lists, they are fetched into a folder of ours first:
# it is the archive that says of itself that it is Debian's.
write_sources() {
    local archives lists=$work/apt/own-lists keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    archives=$(debian_archives)
    if [ -z "$archives" ]; then
        mkdir -p "$lists/partial"
        apt_patiently update -o "Dir::State::Lists=$lists" -o APT::Sandbox::User=root -o Debug::NoLocking=true || true
        archives=$(debian_archives -o "Dir::State::Lists=$lists")
    fi
    if [ -z "$archives" ]; then
        apt_errors >&2
        lacking 'no Debian archive answers: it takes a network, and package sources that name one'
    fi
    {
        echo 'Types: deb'
        echo "URIs: $(tr '\n' ' ' <<<"$archives")"
        echo 'Suites: trixie sid experimental'
        echo 'Components: main'
        [ ! -r "$keyring" ] || echo "Signed-By: $keyring"
    } >"$work/apt/debian.sources"
}

# The package of this kind with the highest number in its name: the number is part of the name, and moves on.
newest_package() { private_apt apt-cache search --names-only "^$1[0-9]+\$" | cut -d' ' -f1 | sort -V | tail -n 1; }

download_packages() {
    local state=$work/apt name packages=()
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    : >"$state/status"
    write_sources
    say 'reading what Debian offers of ROCm'
    private_apt apt-get update >"$work/apt.log" 2>&1 ||
        lacking 'could not read the lists of Debian trixie, sid and experimental:' "$(apt_errors)" \
            'it takes a network, and an archive that has these suites'
    for name in libhiprtc libhiprtc-builtins libamd-comgr rocm-device-libs-; do
        packages+=("$(newest_package "$name")")
        [ -n "${packages[-1]}" ] || lacking "Debian offers no package $name"
    done
    packages+=(libamdhip64-dev) # HIP's headers and, as what they need, its library and comgr's header
    say "downloading ${packages[*]} and what they need"
    private_apt apt-get -y --download-only -t experimental install "${packages[@]}" >"$work/apt.log" 2>&1 ||
        lacking "could not download ${packages[*]}:" "$(apt_errors)"
    mkdir "$work/debs"
    mv "$state"/cache/archives/*.deb "$work/debs/"
    (cd "$work/debs" && sha256sum -- *.deb >SHA256SUMS)
}
