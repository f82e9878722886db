#ifndef PIPEFORMER_ERR_H
#define PIPEFORMER_ERR_H

/*
 * What a call of the library says of its outcome: a status for the program,
 * and one sentence for the person in front of it.
 */

enum pf_status {
    PF_OK = 0,
    PF_END,     /* no more records: a status of its own, never a success */
    PF_ENOMEM,  /* out of memory */
    PF_EIO,     /* the system said no: open, read, map */
    PF_EWRITE,  /* writing failed; errno tells a full disk from a closed pipe */
    PF_EFORMAT, /* bytes that are not what they should be */
    PF_ESHAPE,  /* tensors whose shapes do not fit each other or the model */
    PF_ERANGE,  /* a number outside its range */
    PF_EMODEL,  /* a model that is missing, incomplete or not supported */
    PF_ESTATE,  /* a record that does not follow from those before it */
    PF_AGAIN,   /* not now: finish what was begun, then ask again */
};

/*
 * The sentence has no place in it ("file:record", which the command knows),
 * no newline and no "error".  A caller that does not care passes NULL.
 */
struct pf_err {
    enum pf_status status;
    char msg[400];
};

/* Fills `err` (may be NULL) as printf does, and returns `status`. */
enum pf_status pf_fail(struct pf_err *err, enum pf_status status,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* PF_ENOMEM and its sentence. */
enum pf_status pf_fail_mem(struct pf_err *err);

#endif
