#!/usr/bin/env bash
# describe.sh CC LIBKILN INCLUDE: the binary interface of libkiln as text, a line for each thing that a program compiled against it
# relies on: exported symbols with their versions, functions with the types that they take, structs with the place of each
# member, enumerators with their values, types, and macros. From the library and from the public C headers, as the compiler CC
# reads them; names of parameters and comments are not part of it.
set -euo pipefail
cc=$1 library=$2 include=$3
headers=(kiln/kiln.h kiln/formats.h)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#include "%s"\n' "${headers[@]}" >"$work/headers.c"

echo "# What programs rely on in libkiln, on x86-64. Made by the target renew-abi; tests/abi/README.md says when."
LC_ALL=C readelf -d "$library" | sed -n 's/.*Library soname: \[\(.*\)\]/soname \1/p'
nm -D --defined-only "$library" | awk '$2 != "A" {print "symbol", $NF}' | LC_ALL=C sort

# Declarations of ours, one a line: the headers without comments, macros and attributes.
"$cc" -std=c11 -E -P '-D__attribute__(x)=' -I "$include" "$work/headers.c" | tr '\n' ' ' | awk '
{
    depth = 0
    text = ""
    for (i = 1; i <= length($0); ++i) {
        letter = substr($0, i, 1)
        text = text letter
        if (letter == "{") ++depth
        if (letter == "}") --depth
        if (letter == ";" && depth == 0) {
            gsub(/[ \t]+/, " ", text)
            sub(/^ /, "", text)
            if (text ~ /(^|[^a-z_])kiln_/) print text
            text = ""
        }
    }
}' >"$work/declarations"

# Functions and simple types as they stand; structs and enumerations as a program that asks the compiler.
awk -v program="$work/ask.c" -v headers="$work/headers.c" '
BEGIN {
    print "#include <stddef.h>\n#include <stdio.h>" >program
    while ((getline line <headers) > 0) print line >program
    print "int main(void) {" >program
}
function parameters(text,   list, count, i, result) {
    count = split(text, list, ",")
    for (i = 1; i <= count; ++i) {
        if (list[i] !~ /^ ?(void|[a-z_0-9]+) ?$/) sub(/[A-Za-z_0-9]+$/, "", list[i])
        gsub(/ +$|^ +/, "", list[i])
        result = result (i > 1 ? ", " : "") list[i]
    }
    return result
}
function ask(format, values) { printf "    printf(\"%s\\n\", %s);\n", format, values >program }
/^typedef (struct|enum) [a-z_0-9]+ \{/ {
    kind = $2; type = $3
    if (kind == "struct") ask("struct " type " size %zu align %zu", "sizeof(" type "), _Alignof(" type ")")
    body = $0
    sub(/^[^{]*\{/, "", body)
    sub(/\}[^}]*$/, "", body)
    count = split(body, member, kind == "struct" ? ";" : ",")
    for (i = 1; i <= count; ++i) {
        declared = member[i]
        gsub(/^ +| +$/, "", declared)
        if (declared == "") continue
        name = declared
        if (kind == "enum") {
            sub(/ ?=.*/, "", name)
            ask("enum " type " " name " %d", "(int)" name)
        } else {
            if (!sub(/^.*\(\*/, "", name)) sub(/\[.*/, "", name)
            sub(/\).*/, "", name)
            sub(/^.*[ *]/, "", name)
            ask("member " type "." name " offset %zu size %zu: " declared, \
                "offsetof(" type ", " name "), sizeof(((" type "*)0)->" name ")")
        }
    }
    next
}
/^typedef / { sub(/^typedef /, ""); sub(/ ?; ?$/, ""); print "type", $0; next }
/\(/ {
    name = $0
    list = $0
    sub(/ ?\(.*/, "", name)
    sub(/^[^(]*\(/, "", list)
    sub(/\) ?; ?$/, "", list)
    sub(/^(extern|static|inline) /, "", name)
    print "function", name "(" parameters(list) ")"
    next
}
{ print "other", $0 }
END { print "    return 0;\n}" >program }
' "$work/declarations" | LC_ALL=C sort
"$cc" -std=c11 -I "$include" "$work/ask.c" -o "$work/ask"
"$work/ask"

# Compiled into callers as well. The patch level of the version changes nothing for them.
"$cc" -std=c11 -E -dM -I "$include" "$work/headers.c" |
    sed -n 's/^#define \(KILN_.*\)/macro \1/p' | grep -vE '^macro KILN_([A-Z_0-9]+_H_|VERSION_PATCH|API|NODISCARD)\b' | LC_ALL=C sort
