#include <pipeformer/err.h>

#include <stdarg.h>
#include <stdio.h>

enum pf_status
pf_fail(struct pf_err *err, enum pf_status status, const char *fmt, ...)
{
    va_list ap;

    if (err) {
        err->status = status;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof err->msg, fmt, ap);
        va_end(ap);
    }
    return status;
}

enum pf_status
pf_fail_mem(struct pf_err *err)
{
    return pf_fail(err, PF_ENOMEM, "out of memory");
}
