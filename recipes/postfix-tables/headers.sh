#!/bin/sh
# Fetches the headers of the Postfix that is installed, and prints where they lie. Debian has no package of them: they
# are in the source package, and the line for that is made from where apt has the binary package. Postfix promises
# nothing about its tables' interface from one version to the next, so only the very same version is good enough.
set -eu
fail() {
	echo "headers.sh: $*" >&2
	exit 1
}

version=$(dpkg-query -W -f '${Version}' postfix) || fail 'postfix is not installed from a package: apt install postfix'
kept=${REFIT_HEADERS:-/var/cache/refit/postfix-$version}

# check DIR: these are the headers of the programs that will load what is built with them.
check() {
	[ -e "$1/src/util/dict.h" ] && [ -e "$1/src/global/mail_version.h" ] ||
		fail "$1 holds no Postfix source; remove it, and they are fetched again"
	runs=$(postconf -d -h mail_version)
	is=$(sed -n 's/^#define MAIL_VERSION_NUMBER[[:space:]]*"\(.*\)"$/\1/p' "$1/src/global/mail_version.h")
	[ "$is" = "$runs" ] || fail "the headers in $1 are of Postfix $is, but $runs is installed; remove them, and the right ones are fetched"
}

if [ -e "$kept" ]; then
	check "$kept"
	echo "$kept"
	exit
fi
[ -z "${REFIT_HEADERS-}" ] || fail "there is no $kept; unset REFIT_HEADERS, and they are fetched"

for command in apt-get apt-cache dpkg-source; do
	command -v "$command" >/dev/null || fail "needs $command: apt install apt dpkg-dev"
done
# Which repositories have this version: `postfix | VERSION | URI SUITE/COMPONENT ARCH Packages`.
lines=$(apt-cache madison postfix | awk -v version="$version" '
	$3 == version && $NF == "Packages" { split($6, part, "/"); print "deb-src " $5 " " part[1] " " part[2] }')
[ -n "$lines" ] || fail "apt does not know where postfix $version comes from; apt-get update, then apt-get install postfix"

work=$(mktemp -d /var/tmp/postfix-headers.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/parts" "$work/archives/partial"
echo "$lines" >"$work/sources.list"
# With lists of its own: the system's apt is not changed. Its keys and proxies are used.
apt() {
	apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts="$work/parts" \
		-o Dir::State::Lists="$work/lists" -o Dir::Cache::Archives="$work/archives" -o Dir::Cache::pkgcache= \
		-o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@" >"$work/log" 2>&1
}
errors() { grep '^[EW]:' "$work/log" | tail -n 3; }
apt update || fail "apt-get update with this line failed: $lines: $(errors)"
(cd "$work" && apt source --download-only "postfix=$version") || fail "apt has no source package of postfix $version: $(errors)"
# apt has checked it against the signed index.
dpkg-source --no-check -x "$work"/postfix_*.dsc "$work/source" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
check "$work/source"

# Whole or not at all, should two of them fetch at once.
mkdir -p "${kept%/*}" "$work/headers/src"
cp -r "$work/source/src/util" "$work/source/src/global" "$work/headers/src/"
find "$work/headers" -type f ! -name '*.h' -delete
mv -T "$work/headers" "$kept" 2>/dev/null || [ -e "$kept" ] || fail "cannot write $kept"
echo "$kept"
