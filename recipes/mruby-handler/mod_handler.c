/*
 * An Apache module that answers requests with a handler in mruby, as small as it can be:
 *
 *   HandlerFile /path/handler.rb    the file's value is what answers: call(env) gives [status, headers, [body…]]
 *   SetHandler mruby                where it answers
 *
 * Each process has one mrb_state. It is opened, and the file loaded, when the process starts; a request calls the
 * handler and restores mruby's arena, so that nothing of it is kept. The state serves one request at a time: the MPM has
 * to be prefork.
 */
#include <httpd.h>
#include <http_config.h>
#include <http_log.h>
#include <http_protocol.h>
#include <ap_mpm.h>
#include <apr_strings.h>

#include <mruby.h>
#include <mruby/array.h>
#include <mruby/compile.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/string.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

APLOG_USE_MODULE(handler);

static const char *handler_file;
static mrb_state *mrb;
static mrb_value handler;

/* Whether the last call raised; what it raised goes to stderr, which is the error log. */
static int raised(void)
{
    if (mrb->exc == NULL)
        return 0;
    mrb_print_error(mrb);
    mrb->exc = NULL;
    return 1;
}

static apr_status_t close_state(void *unused)
{
    (void)unused;
    mrb_close(mrb);
    return APR_SUCCESS;
}

/* After the fork: each process its own state. Without one it cannot serve, and no other child could: the server ends. */
static void start_process(apr_pool_t *pool, server_rec *server)
{
    FILE *file = handler_file == NULL ? NULL : fopen(handler_file, "r");
    if (file == NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, APR_FROM_OS_ERROR(errno), server, "cannot read HandlerFile %s",
                     handler_file == NULL ? "(not set)" : handler_file);
        exit(APEXIT_CHILDFATAL);
    }
    mrb = mrb_open();
    if (mrb == NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, "mruby does not start");
        exit(APEXIT_CHILDFATAL);
    }
    handler = mrb_load_file(mrb, file);
    fclose(file);
    if (raised())
        exit(APEXIT_CHILDFATAL);
    mrb_gc_register(mrb, handler);
    apr_pool_cleanup_register(pool, NULL, close_state, apr_pool_cleanup_null);
}

/* The strings of an array, one after another, to the client; whether it was an array of strings. */
static int write_body(request_rec *request, mrb_value parts)
{
    if (!mrb_array_p(parts))
        return 0;
    for (mrb_int i = 0; i < RARRAY_LEN(parts); i++) {
        mrb_value part = mrb_ary_entry(parts, i);
        if (!mrb_string_p(part))
            return 0;
        ap_rwrite(RSTRING_PTR(part), (int)RSTRING_LEN(part), request);
    }
    return 1;
}

static int call_handler(request_rec *request)
{
    mrb_value env = mrb_hash_new(mrb);
    mrb_hash_set(mrb, env, mrb_str_new_lit(mrb, "PATH_INFO"), mrb_str_new_cstr(mrb, request->uri));
    mrb_value answer = mrb_funcall(mrb, handler, "call", 1, env);
    if (raised())
        return HTTP_INTERNAL_SERVER_ERROR;
    if (!mrb_array_p(answer) || RARRAY_LEN(answer) != 3 || !mrb_integer_p(mrb_ary_entry(answer, 0)) ||
        !mrb_hash_p(mrb_ary_entry(answer, 1))) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, request, "the handler's answer is not [status, headers, body]");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    request->status = (int)mrb_integer(mrb_ary_entry(answer, 0));
    mrb_value type = mrb_hash_get(mrb, mrb_ary_entry(answer, 1), mrb_str_new_lit(mrb, "content-type"));
    if (mrb_string_p(type))
        ap_set_content_type(request, apr_pstrmemdup(request->pool, RSTRING_PTR(type), (apr_size_t)RSTRING_LEN(type)));
    if (!write_body(request, mrb_ary_entry(answer, 2))) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, request, "the handler's body is not an array of strings");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

static int answer(request_rec *request)
{
    if (request->handler == NULL || strcmp(request->handler, "mruby") != 0)
        return DECLINED;
    int arena = mrb_gc_arena_save(mrb);
    int status = call_handler(request);
    mrb_gc_arena_restore(mrb, arena);
    return status;
}

/* Threads would share the state. */
static int refuse_threads(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary, server_rec *server)
{
    (void)pool, (void)log, (void)temporary;
    int threads = 0;
    if (ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads) == APR_SUCCESS && threads <= 1)
        return OK;
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, "one mrb_state serves one thread: load mpm_prefork");
    return HTTP_INTERNAL_SERVER_ERROR;
}

static const char *set_file(cmd_parms *command, void *config, const char *path)
{
    (void)command, (void)config;
    handler_file = path;
    return NULL;
}

static const command_rec commands[] = {
    AP_INIT_TAKE1("HandlerFile", set_file, NULL, RSRC_CONF, "the file in mruby whose value answers requests"),
    {NULL},
};

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_post_config(refuse_threads, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(start_process, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(answer, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA handler_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, commands, register_hooks, 0,
};
