#!/usr/bin/env bash
# packaging/try.sh PACKAGE OLDER_PACKAGE -- installs, serves, upgrades, removes and purges kvingest in a fresh Debian root
# that its own systemd has booted, in namespaces of its own (also of the network: nothing but its own loopback).
#
# Needs root, debootstrap and Debian's mirror. The root is made once and kept in build/package; each run copies it. Ends
# with `N passed, N failed, 0 skipped`, and with 1 when a check failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=bookworm
place=$PWD/build/package
root=$place/root
init=
passed=0 failed=0

die() { printf 'try.sh: %s\n' "$*" >&2; exit 1; }
check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$place/output.log" 2>&1; then
    printf 'ok      %s\n' "$what"
    passed=$((passed + 1))
  else
    printf 'FAILED  %s\n' "$what"
    tail -n 15 "$place/output.log" | sed 's/^/        /'
    failed=$((failed + 1))
  fi
}
# Waits until a command succeeds, at most some minutes.
eventually() {
  local tries
  for tries in $(seq 1500); do
    ! "$@" || return 0
    sleep 0.1
  done
  return 1
}

clean_up() {
  [ -z "$init" ] || kill -KILL "$init" 2>/dev/null || true
  [ -z "$init" ] || wait "$init" 2>/dev/null || true
  # What the booted systemd made of groups; only empty ones can be removed.
  [ -z "${group:-}" ] || find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
}
trap clean_up EXIT

[ $# = 2 ] || die "PACKAGE OLDER_PACKAGE are wanted"
[ "$(id -u)" = 0 ] || die "only root can make a root"
command -v debootstrap >/dev/null || die "debootstrap is missing"
mkdir -p "$place"

# ---- The root, with what the package depends on ---------------------------------------------------------------------

if [ ! -e "$root.base/.complete" ]; then
  mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
  rm -rf "$root.base"
  debootstrap --variant=minbase --include=ca-certificates,systemd,systemd-sysv "$suite" "$root.base" \
    "${mirror:-http://deb.debian.org/debian}" >"$place/debootstrap.log" 2>&1 || {
    tail -n 5 "$place/debootstrap.log" >&2
    die "debootstrap failed"
  }
  touch "$root.base/.complete"
fi
rm -rf "$root"
cp -a "$root.base" "$root"
cp "$1" "$root/package.deb"
cp "$2" "$root/older.deb"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
depends=$(dpkg-deb -f "$1" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/,//g')
# No service starts here: nothing is booted yet.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
# shellcheck disable=SC2086
chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -c "apt-get update -qq && apt-get install -y -qq \
  --no-install-recommends $depends" >"$place/apt.log" 2>&1 || {
  tail -n 10 "$place/apt.log" >&2
  die "what the package depends on could not be installed"
}
rm "$root/usr/sbin/policy-rc.d"

# ---- Booting it -----------------------------------------------------------------------------------------------------

# A group of its own, which is the top of all groups that the booted systemd sees.
if [ -d /sys/fs/cgroup/systemd ]; then
  group=/sys/fs/cgroup/systemd/kvingest-try-$$
else
  group=/sys/fs/cgroup/kvingest-try-$$
fi
mkdir "$group"

boot() {
  echo $BASHPID >"$group/cgroup.procs"
  exec unshare --mount --propagation private --pid --fork --kill-child --uts --ipc --cgroup --net bash -c '
    set -e
    root=$1
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    if [ -d /sys/fs/cgroup/systemd ]; then
      mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
      mkdir "$root/sys/fs/cgroup/systemd"
      mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
    else
      mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    fi
    mount -t tmpfs tmpfs "$root/dev"
    for device in null zero full random urandom tty; do
      touch "$root/dev/$device"
      mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t devpts -o ptmxmode=0666 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    mount -t tmpfs tmpfs "$root/run"
    ip link set lo up
    # Not chroot: the kernel gives no user namespace to what is in one.
    cd "$root"
    mkdir -p before
    pivot_root . before
    exec env -i container=try PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "umount -l /before && rmdir /before &&
      exec /lib/systemd/systemd --system --unit=multi-user.target"' boot "$root"
}
boot >"$place/boot.log" 2>&1 &
init=$!

# The process in the root that is its init: the child of unshare.
booted_pid() { pgrep --parent "$init" | grep -m 1 .; }
eventually booted_pid >/dev/null || die "nothing was booted: $(tail -n 3 "$place/boot.log")"
pid=$(booted_pid)
inside() { nsenter --target "$pid" --mount --pid --uts --ipc --cgroup --net --root --wd -- "$@"; }
is_up() { inside systemctl is-system-running 2>/dev/null | grep -qE '^(running|degraded)$'; }
eventually is_up || die "systemd does not come up in the root: $(tail -n 3 "$place/boot.log")"

# ---- The package ----------------------------------------------------------------------------------------------------

install_package() { inside env DEBIAN_FRONTEND=noninteractive dpkg -i "$1"; }
is_active() { inside systemctl is-active --quiet kvingest; }
is_inactive() { ! is_active; }
main_pid() { inside systemctl show --property MainPID --value kvingest; }
runs_without_rights() { inside sh -c "grep -q '^CapEff:[[:space:]]*0000000000000000$' /proc/$(main_pid)/status &&
  ! grep -q '^Uid:[[:space:]]*0[[:space:]]' /proc/$(main_pid)/status"; }
feed() { inside kvfeed --connect 127.0.0.1:5555 --messages 1000 --quiet; }
has_records() { [ "$(inside kvq count --dir /var/lib/private/kvingest/kvdata)" = "$1" ]; }
has_http() { inside bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080
  printf "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n" >&3; grep -q "healthy.:true" <&3'; }
is_gone() { [ ! -e "$root$1" ] && [ ! -L "$root$1" ]; }
nothing_left() { [ -z "$(find "$root" -xdev \( -name '*kvingest*' -o -name kvq -o -name kvfeed \) \
  -not -path '*/var/log/*' -print | tee /dev/stderr)" ]; }
version_is() { [ "$(inside dpkg-query -W -f '${Version}' kvingest)" = "$(dpkg-deb -f "$1" Version)" ]; }

check "the older package installs" install_package /older.deb
check "the service starts and is enabled" eventually is_active
is_active || inside journalctl --no-pager --unit kvingest --lines 10
check "it starts at the next boot" inside systemctl is-enabled --quiet kvingest
check "it runs as a user of its own, without capabilities" runs_without_rights
check "it takes a feed" feed
check "its records are readable by root" has_records 1000
check "its records are nobody else's to read" test "$(stat -c %a "$root/var/lib/private/kvingest")" = 700
printf 'KVINGEST_HTTP=127.0.0.1:8080\n' >>"$root/etc/default/kvingest"
check "it starts anew with the options of /etc/default" inside systemctl restart kvingest
check "the status page is served" eventually has_http
before=$(main_pid)
check "the newer package upgrades it" install_package /package.deb
check "the newer version is installed" version_is "$1"
check "the service runs again" eventually is_active
check "by the new program" test "$(main_pid)" != "$before"
check "what was edited in /etc/default still holds" eventually has_http
check "the records are still there, and more come" feed
check "all of them" has_records 2000
check "the store is sound" inside kvq verify --dir /var/lib/private/kvingest/kvdata
check "it is removed" inside dpkg -r kvingest
check "the service has stopped" is_inactive
check "its program is gone" is_gone /usr/bin/kvingest
check "its records are not" test -d "$root/var/lib/private/kvingest/kvdata"
check "it installs again over what it left" install_package /package.deb
check "and serves the same records" eventually is_active
check "of which none was lost" has_records 2000
check "it is purged" inside dpkg -P kvingest
check "and nothing of it is left" nothing_left

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
