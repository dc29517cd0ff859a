#!/bin/sh
# Apache as packaged, with a module of ours that holds mruby (mod_handler.c), and a configuration of its own.
#
# One child process: every request is served from one mruby state, so memory can be set against requests. With more,
# chance decides which process serves how many.
set -eu

# The flags with which this Apache was built; mruby is linked into the module and exports nothing from it.
# shellcheck disable=SC2046 # words on purpose
gcc -std=gnu11 -O2 -g -Wall -Wextra -shared -fPIC $(apxs -q EXTRA_CPPFLAGS) -I"$(apxs -q INCLUDEDIR)" \
    -I"$(apxs -q APR_INCLUDEDIR)" -o mod_handler.so "$REFIT_RECIPE/mod_handler.c" -lmruby -lm -Wl,--exclude-libs,ALL

modules=$(apxs -q LIBEXECDIR)
cat >httpd.conf <<END
ServerRoot "$REFIT_DIR"
DefaultRuntimeDir "$REFIT_DIR"
PidFile httpd.pid
ErrorLog error.log
ServerName 127.0.0.1
Listen 127.0.0.1:$REFIT_PORT_HTTP

LoadModule mpm_prefork_module "$modules/mod_mpm_prefork.so"
<IfModule !unixd_module>
    LoadModule unixd_module "$modules/mod_unixd.so"
</IfModule>
LoadModule authz_core_module "$modules/mod_authz_core.so"
LoadModule handler_module mod_handler.so

StartServers 1
MinSpareServers 1
MaxSpareServers 1
MaxRequestWorkers 1
# A process serves as long as the server runs: what it gathers stays.
MaxConnectionsPerChild 0

HandlerFile "$REFIT_RECIPE/handler.rb"
<Location "/">
    SetHandler mruby
    Require all granted
</Location>
END

# The server in the foreground, or beneath a program in $UNDER.
cat >httpd <<END
exec \${UNDER-} "$(apxs -q SBINDIR)/$(apxs -q PROGNAME)" -f "$REFIT_DIR/httpd.conf" "\$@"
END
