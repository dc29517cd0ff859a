/*
 * A server that runs an mruby handler for each request, as a web server with mruby inside does, without the network:
 * a line with a number on stdin is that many requests, a line on stdout tells how many there have been.
 *
 * It leaks in one of two ways, or not:
 *   lost  a method written in C forgets to free a copy: no pointer to it is left.
 *   kept  the GC arena is not restored after a request, so mruby keeps every answer: all is known, freed at the end.
 *   none  to see that nothing else grows.
 */
#include <mruby.h>
#include <mruby/compile.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lose;

/* What a request's header would be: 200 bytes, by way of a copy of its own. */
static mrb_value user_agent(mrb_state *mrb, mrb_value self)
{
    (void)self;
    size_t length = 200;
    char *copy = malloc(length);
    if (copy == NULL)
        mrb_raise(mrb, E_RUNTIME_ERROR, "out of memory");
    memset(copy, 'a', length);
    mrb_value header = mrb_str_new(mrb, copy, (mrb_int)length);
    if (!lose)
        free(copy);
    return header;
}

static void end_on_exception(mrb_state *mrb)
{
    if (mrb->exc == NULL)
        return;
    mrb_print_error(mrb);
    exit(1);
}

int main(int argc, char **argv)
{
    FILE *handler = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (handler == NULL) {
        fprintf(stderr, "usage: server lost|kept|none handler.rb\n");
        return 2;
    }
    lose = strcmp(argv[1], "lost") == 0;
    int keep = strcmp(argv[1], "kept") == 0;

    mrb_state *mrb = mrb_open();
    if (mrb == NULL) {
        fprintf(stderr, "mruby does not start\n");
        return 1;
    }
    mrb_define_method(mrb, mrb->kernel_module, "user_agent", user_agent, MRB_ARGS_NONE());
    mrb_load_file(mrb, handler);
    fclose(handler);
    end_on_exception(mrb);
    fprintf(stderr, "ready\n");

    mrb_value top = mrb_top_self(mrb);
    int arena = mrb_gc_arena_save(mrb);
    long served = 0;
    long long bytes = 0;
    char line[32];
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (long left = atol(line); left > 0; left--) {
            mrb_value answer = mrb_funcall(mrb, top, "handle", 0);
            end_on_exception(mrb);
            bytes += RSTRING_LEN(answer);
            served++;
            if (served % 1000 == 0)
                fprintf(stderr, "%ld served\n", served);
            if (!keep)
                mrb_gc_arena_restore(mrb, arena);
        }
        printf("%ld requests served, %lld bytes of answers\n", served, bytes);
        fflush(stdout);
    }
    mrb_close(mrb);
    return 0;
}
