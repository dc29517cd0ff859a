#!/bin/sh
# h2o as packaged, with one handler. One thread, so that every run serves from one mruby state: with more, chance
# decides which states the connections warm up.
set -eu
cat >h2o.conf <<END
listen:
  host: 127.0.0.1
  port: $REFIT_PORT_HTTP
num-threads: 1
crash-handler: /bin/true
error-log: $REFIT_DIR/error.log
hosts:
  default:
    paths:
      "/":
        mruby.handler-file: $REFIT_RECIPE/handler.rb
END
