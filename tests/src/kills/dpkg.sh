# A package of its own for each round.
prepare() {
    mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates packages
    : >root/var/lib/dpkg/status
    : >root/var/lib/dpkg/available
}

load() {
    tree=packages/p$1
    mkdir -p "$tree/DEBIAN" "$tree/usr/share/p$1"
    printf 'Package: p%s\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n' "$1" >"$tree/DEBIAN/control"
    for n in $(seq 60); do
        echo "$1 $n" >"$tree/usr/share/p$1/$n"
    done
    dpkg-deb --root-owner-group -Znone -b "$tree" "$tree.deb" >/dev/null
    dpkg --refuse-unsafe-io --log=/dev/null --root="$PWD/root" --force-bad-path --force-script-chrootless \
        -i "$tree.deb" >/dev/null
    seq 60 | sed "s/^/$1 /"
}

found() {
    for package in packages/*.deb; do
        name=$(basename "$package" .deb)
        dpkg-query --admindir="$PWD/root/var/lib/dpkg" -W -f '${Status}\n' "$name" | grep -qx 'install ok installed'
    done
    cat root/usr/share/p*/*
}
