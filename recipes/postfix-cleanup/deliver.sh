#!/bin/sh
# For the promise: nobody takes mail over the network while the disk is recorded, so Postfix delivers it itself, into a
# Maildir in $REFIT_DIR.
set -eu
mkdir box
chown nobody box
cat >>conf/main.cf <<END
relayhost =
virtual_transport = virtual
virtual_mailbox_domains = test.local
virtual_mailbox_base = $REFIT_DIR/box
virtual_mailbox_maps = static:mails/
virtual_uid_maps = static:$(id -u nobody)
virtual_gid_maps = static:$(id -g nobody)
END
echo 'virtual unix - n n - - virtual' >>conf/master.cf
