# One package after the other.
prepare() {
    mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates packages
    : >root/var/lib/dpkg/status
    : >root/var/lib/dpkg/available
}

load() {
    package=0
    until [ -e enough ]; do
        package=$((package + 1))
        name=p$1-$package
        tree=packages/$name
        mkdir -p "$tree/DEBIAN" "$tree/usr/share/$name"
        printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n' "$name" \
            >"$tree/DEBIAN/control"
        for n in $(seq 60); do
            echo "$name $n" >"$tree/usr/share/$name/$n"
        done
        dpkg-deb --root-owner-group -Znone -b "$tree" "$tree.deb" >/dev/null
        dpkg --refuse-unsafe-io --log=/dev/null --root="$PWD/root" --force-bad-path --force-script-chrootless \
            -i "$tree.deb" >/dev/null
        seq 60 | sed "s/^/$name /"
    done
}

found() {
    installed=$(dpkg-query --admindir="$PWD/root/var/lib/dpkg" -W -f '${Status}\n' | grep -cx 'install ok installed')
    [ "$installed" = "$(ls packages | grep -c '\.deb$')" ]
    find root/usr/share -type f -exec cat {} +
}
