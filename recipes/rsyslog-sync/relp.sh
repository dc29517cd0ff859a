#!/bin/sh
# For the promise: lines come by RELP, which acknowledges them; plain syslog does not.
set -eu
cat >>rsyslog.conf <<END

module(load="imrelp")
input(type="imrelp" port="$REFIT_PORT_RELP" address="127.0.0.1")
END
