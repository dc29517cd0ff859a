/*
 * A server that runs an mruby handler for each request, as a web server with mruby inside does, without the network:
 * a line with a number on stdin is that many requests, a line on stdout tells how many there have been and what lives.
 */
#include <mruby.h>
#include <mruby/compile.h>
#include <mruby/error.h>
#include <mruby/numeric.h>
#include <stdio.h>
#include <stdlib.h>

static void end_on_exception(mrb_state *mrb)
{
    if (mrb->exc == NULL)
        return;
    mrb_print_error(mrb);
    exit(1);
}

static void define(mrb_state *mrb, const char *name, const char *number)
{
    mrb_define_const(mrb, mrb->object_class, name, mrb_int_value(mrb, atol(number)));
}

int main(int argc, char **argv)
{
    FILE *handler = argc == 4 ? fopen(argv[1], "r") : NULL;
    if (handler == NULL) {
        fprintf(stderr, "usage: server handler.rb REQUESTS-BETWEEN-IMPORTS ROWS-OF-AN-IMPORT\n");
        return 2;
    }
    mrb_state *mrb = mrb_open();
    if (mrb == NULL) {
        fprintf(stderr, "mruby does not start\n");
        return 1;
    }
    define(mrb, "IMPORT_EVERY", argv[2]);
    define(mrb, "IMPORT_ROWS", argv[3]);
    mrb_load_file(mrb, handler);
    fclose(handler);
    end_on_exception(mrb);
    fprintf(stderr, "ready\n");

    mrb_value top = mrb_top_self(mrb);
    int arena = mrb_gc_arena_save(mrb);
    long served = 0;
    char line[32];
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (long left = atol(line); left > 0; left--) {
            mrb_funcall(mrb, top, "handle", 0);
            end_on_exception(mrb);
            mrb_gc_arena_restore(mrb, arena);
            served++;
            if (served % 500 == 0)
                fprintf(stderr, "%ld served\n", served);
        }
        mrb_value live = mrb_funcall(mrb, top, "live", 0);
        end_on_exception(mrb);
        printf("%ld requests served, %ld bytes live\n", served, (long)mrb_integer(live));
        fflush(stdout);
    }
    mrb_close(mrb);
    return 0;
}
