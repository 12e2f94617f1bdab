/* mets.h: the C interface of libmets, the client of the METS memory broker.
 *
 * What it is. libmets gives a process memory of a device that `metsd` owns and
 * shares between processes. A buffer's address stays the same for its life,
 * but while no op uses it, its bytes may be in host memory: an op announces
 * what it is going to touch (mets_op_begin), and libmets brings that back
 * first.
 *
 *     mets_client* client;
 *     mets_open_options options = METS_OPEN_OPTIONS_INIT;
 *     if (mets_open(&options, &client) != METS_OK) die(mets_last_error());
 *     mets_device* device;
 *     mets_device_open(client, NULL, METS_OPS_SEEN, &device);
 *     float* a;
 *     mets_alloc_options how = METS_ALLOC_OPTIONS_INIT;
 *     how.bytes = 64 << 20;
 *     mets_alloc(device, &how, (void**)&a);
 *     mets_access use = {a, 0, METS_WRITE};
 *     mets_op* op;
 *     mets_op_begin(device, NULL, &use, 1, 0, &op);
 *     fill(a);
 *     mets_op_end(op, NULL);
 *     mets_free(device, a, NULL);
 *     mets_close(client);
 *
 * Loading it. A process that has its own gRPC, protobuf or Abseil (TensorFlow)
 * opens libmets.so with dlopen(RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) and takes
 * the functions by dlsym; others may link it.
 *
 * Threads. Every function may be called from any thread. Only mets_open,
 * mets_device_open, mets_alloc, mets_op_begin, mets_gate_enter and the functions
 * of shared memory can block.
 *
 * Errors. Functions return a mets_status; the text for people is in
 * mets_last_error(), per thread. A function that fails changes nothing.
 *
 * fork. Buffers do not exist in a forked child: touching one ends the child
 * with one line on stderr, and every function returns METS_FORKED there.
 *
 * Environment. METS_RUN_DIR (directory of the daemon's sockets), METS_JOB,
 * METS_LIMIT, METS_GUARANTEE, METS_PRIORITY (wishes; fields of
 * mets_open_options come first), METS_WEIGHT (share of the device time among
 * jobs of one priority, 1 to 1000; default 1), METS_WAIT (a duration such as
 * "60s", "forever", or "fail": how long a request waits for memory; default
 * 60s).
 *
 * Versions. Structs begin with their size; set them with the *_INIT macros. New
 * fields are added at the end, and functions are never removed while
 * METS_ABI_VERSION stays the same.
 */
#ifndef METS_METS_H_
#define METS_METS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define METS_ABI_VERSION 1

#if defined(__GNUC__)
#define METS_EXPORT __attribute__((visibility("default")))
#else
#define METS_EXPORT
#endif

typedef enum mets_status {
  METS_OK = 0,
  METS_INVALID_ARGUMENT = 1,  /* The call is wrong: nothing was done. */
  METS_OUT_OF_MEMORY = 2,     /* Could not be had before the deadline, or ever;
                                 the text says who holds what. */
  METS_UNAVAILABLE = 3,       /* No daemon: not running, not reachable. */
  METS_PERMISSION_DENIED = 4, /* This user may not use the daemon. */
  METS_REFUSED = 5,           /* The daemon refuses the session: bad job name,
                                 guarantee that does not fit, versions. */
  METS_FORKED = 6,            /* The process is a forked child. */
  METS_FAILED = 7,            /* A copy, mapping or system call failed. */
  METS_NOT_FOUND = 8,         /* No share of that name. */
  METS_ALREADY_EXISTS = 9     /* The share's name is taken, or the process has
                                 it already. */
} mets_status;

typedef struct mets_client mets_client; /* The process's session. */
typedef struct mets_device mets_device; /* An attached device. */
typedef struct mets_op mets_op;         /* An op between begin and end. */

/* A stream of the device, on which a program's work runs in order after the
 * calls return: a CUstream of the device's primary context. The default streams
 * have their own names there (CU_STREAM_LEGACY, CU_STREAM_PER_THREAD), because
 * NULL is host order: what came before has been done, as the calling thread
 * sees it. Host devices have no streams.
 *
 * libmets remembers which streams may still touch which memory, and makes who
 * uses it next wait, without blocking where that is another stream. A stream
 * that has been named must live as long as the process. Each of the first 63
 * is kept apart; later ones wait for one another. */
typedef void* mets_stream;

/* Version of the interface that the library has; compare it with
 * METS_ABI_VERSION before anything else. */
METS_EXPORT int mets_abi_version(void);

/* Text of the last error of the calling thread; "" when there was none. Valid
 * until the thread's next call. */
METS_EXPORT const char* mets_last_error(void);

/* ---- session ---------------------------------------------------------- */

typedef struct mets_open_options {
  size_t size;             /* sizeof(mets_open_options) */
  const char* run_dir;     /* NULL: METS_RUN_DIR, else $XDG_RUNTIME_DIR/mets for
                              an ordinary user, else /run/mets */
  const char* job;         /* NULL: METS_JOB, else the program's name and pid */
  uint64_t limit_bytes;    /* 0: METS_LIMIT, else none */
  uint64_t guarantee_bytes; /* 0: METS_GUARANTEE, else none */
  int32_t priority;        /* 0: METS_PRIORITY, else 0 */
} mets_open_options;
#define METS_OPEN_OPTIONS_INIT \
  { sizeof(mets_open_options), NULL, NULL, 0, 0, 0 }

/* Connects the process to metsd. A process has one session: a second call
 * returns the same client and counts it. Blocks for at most 10 s. */
METS_EXPORT mets_status mets_open(const mets_open_options* options,
                                  mets_client** client);

/* Ends one use of the client. The session itself ends with the process:
 * buffers stay valid until they are freed. */
METS_EXPORT void mets_close(mets_client* client);

/* ---- device ------------------------------------------------------------ */

typedef enum mets_device_mode {
  METS_OPS_SEEN = 1, /* The program announces every op with mets_op_begin. */
  METS_GATED = 2     /* It does not: buffers are held, and move only while a
                        thread waits at the gate, see mets_gate_enter. */
} mets_device_mode;

/* Attaches a device; before any context of the process on it exists. `id`
 * NULL: the daemon's first. The same id gives the same device. */
METS_EXPORT mets_status mets_device_open(mets_client* client, const char* id,
                                         mets_device_mode mode,
                                         mets_device** device);

typedef struct mets_device_info {
  size_t size;              /* sizeof(mets_device_info) */
  const char* id;           /* "host0", or a GPU's UUID */
  const char* kind;         /* "host" or "cuda" */
  uint64_t pool_bytes;      /* what all jobs share */
  uint64_t limit_bytes;     /* of this job; 0: none */
  uint64_t slab_threshold_bytes; /* smaller allocations share slabs */
} mets_device_info;
#define METS_DEVICE_INFO_INIT \
  { sizeof(mets_device_info), NULL, NULL, 0, 0, 0 }

METS_EXPORT mets_status mets_device_get_info(mets_device* device,
                                             mets_device_info* info);

/* ---- memory -------------------------------------------------------------- */

typedef enum mets_mobility {
  METS_MOVABLE = 0, /* Every access is announced by ops. */
  METS_HELD = 1,    /* Accesses are not visible: stays while the gate is open. */
  METS_FIXED = 2    /* Never moves. */
} mets_mobility;

typedef struct mets_alloc_options {
  size_t size;            /* sizeof(mets_alloc_options) */
  uint64_t bytes;         /* > 0 */
  uint64_t align;         /* power of two up to 64 KiB; 0: 64 */
  mets_stream stream;     /* first used in this stream's order: its later work
                             waits for what may still touch the memory (with
                             NULL, the call does) */
  mets_mobility mobility;
  int64_t deadline_ms;    /* how long to wait; -1: METS_WAIT */
} mets_alloc_options;
#define METS_ALLOC_OPTIONS_INIT \
  { sizeof(mets_alloc_options), 0, 0, NULL, METS_MOVABLE, -1 }

/* Allocates. Inside an op of the calling thread (between mets_op_begin and
 * mets_op_end) it draws on what the op asked for, and the buffer stays pinned
 * until the op ends; outside, a movable buffer may move as soon as the call
 * returns. Blocks until the memory is there or the deadline has passed. */
METS_EXPORT mets_status mets_alloc(mets_device* device,
                                   const mets_alloc_options* options,
                                   void** address);

/* Frees; legal in any state of the buffer. Never blocks. NULL does nothing.
 * The memory is used again or given away only after the work that is now on
 * `stream` and on the streams of the ops that have used it; an allocation on
 * `stream` need not wait for that. */
METS_EXPORT void mets_free(mets_device* device, void* address,
                           mets_stream stream);

typedef struct mets_buffer_info {
  size_t size;            /* sizeof(mets_buffer_info) */
  void* address;          /* as mets_alloc returned it */
  uint64_t bytes;         /* as asked for */
  uint64_t buffer_id;     /* unique in the process, never reused */
  mets_mobility mobility;
  int resident;           /* 0: its bytes are in swap space */
} mets_buffer_info;
#define METS_BUFFER_INFO_INIT \
  { sizeof(mets_buffer_info), NULL, 0, 0, METS_MOVABLE, 0 }

/* The allocation that `address` points into. METS_INVALID_ARGUMENT when it is
 * none of this device's. */
METS_EXPORT mets_status mets_find(mets_device* device, const void* address,
                                  mets_buffer_info* info);

/* Whether `address` lies in the device's address region, at the cost of two
 * comparisons. */
METS_EXPORT int mets_owns(mets_device* device, const void* address);

/* Changes what may be done with a buffer. Making it held or fixed brings it
 * back first (and may block for that). */
METS_EXPORT mets_status mets_set_mobility(mets_device* device, void* address,
                                          mets_mobility mobility);

/* ---- ops ------------------------------------------------------------------- */

typedef enum mets_access_kind {
  METS_READ = 1,
  METS_WRITE = 2,      /* reads too, perhaps */
  METS_NEW = 3         /* an output or workspace of `bytes` that the op will
                          allocate; `address` is NULL */
} mets_access_kind;

typedef struct mets_access {
  const void* address; /* anywhere in the buffer; addresses that are not the
                          device's are ignored */
  uint64_t bytes;      /* METS_NEW: size of the allocation; else not used */
  mets_access_kind kind;
} mets_access;

/* expected_bytes of an op that cannot say what it will allocate. On a tight
 * device such ops run one at a time. */
#define METS_UNKNOWN UINT64_MAX

/* Names the next op that the calling thread begins, by its type, such as
 * "MatMul": `name` is kept as a pointer until then. Ops of one name that touch
 * buffers of the same sizes look alike to METS, which finds a training's step
 * in the sequence of its ops; in recordings the names are to be read. */
METS_EXPORT void mets_op_name(mets_device* device, const char* name);

/* Asks to run an op that touches `accesses` and allocates what they name as
 * METS_NEW plus `expected_bytes`. All or nothing: when it returns, every buffer
 * named is resident for work that comes on `stream` (or any other) and pinned,
 * and the memory for what is new is set aside. While it waits, it pins nothing.
 * Ops nest; an inner op's thread must not hold framework locks that the outer
 * needs.
 *
 * METS_OUT_OF_MEMORY after METS_WAIT. `*op` may become NULL with METS_OK: there
 * was nothing to do, and mets_op_end(NULL, …) is allowed. */
METS_EXPORT mets_status mets_op_begin(mets_device* device, mets_stream stream,
                                      const mets_access* accesses, size_t count,
                                      uint64_t expected_bytes, mets_op** op);

/* The op's work is on `stream` (or, in host order, done). Unpins: its buffers
 * may leave once the stream has passed that work. May be called by another
 * thread than mets_op_begin; allocations of that thread are then no longer the
 * op's. */
METS_EXPORT void mets_op_end(mets_op* op, mets_stream stream);

/* The bytes (and how many allocations) that the op has allocated so far from
 * the device, so that the caller can announce them next time. */
METS_EXPORT void mets_op_allocated(const mets_op* op, uint64_t* bytes,
                                   uint64_t* largest, size_t* count);

/* The calling thread leaves the op without ending it (asynchronous ops), so
 * that its later allocations are not the op's. */
METS_EXPORT void mets_op_detach(mets_op* op);

/* ---- shared memory --------------------------------------------------------- */

/* A share is memory of one device that several processes read, without copies:
 * weights that all of them need, say. One process publishes a buffer under a
 * name, others attach it; each has it at an address of its own.
 *
 *     mets_share_options share = METS_SHARE_OPTIONS_INIT;
 *     share.name = "bert-base";
 *     share.checksum = "sha256:9f86d0";
 *     mets_share_publish(device, weights, &share);     the one
 *     mets_share_attach(device, &share, &weights);     the others
 *
 * It counts once in the device pool: against the limit of the publisher's job,
 * after that of another that has it. It is fixed: it never moves. It lives
 * until the last process has detached it or has ended, however that came, and
 * nobody else gets the memory before. The name is free again then.
 *
 * Only processes of one trust domain (jobs of one user, or of one listener) see
 * each other's shares. libmets maps a share read-only, in the publisher too: on
 * host devices a write ends the process with SIGSEGV; on GPUs it does where the
 * driver can map so. That guards against mistakes, not against a program of the
 * same user that means harm.
 *
 * metsd never reads the bytes: the checksum is what the publisher says, of
 * whatever kind; a process that wants to know computes it anew.
 *
 * A restart of metsd takes no memory away, but unless it keeps the pool (under
 * systemd), what was published before cannot be attached any more, and its name
 * is free.
 *
 * Legacy CUDA IPC (cuIpcGetMemHandle, cudaIpcGetMemHandle) does not work on
 * memory of mets_alloc: the driver refuses what was not allocated by cuMemAlloc.
 * Publish it instead. */
typedef struct mets_share_options {
  size_t size;          /* sizeof(mets_share_options) */
  const char* name;     /* [A-Za-z0-9._-]{1,63}; unique in the trust domain, for
                           each device */
  const char* checksum; /* at most 128 printable characters without spaces.
                           Publish: NULL, none. Attach: it must be the same;
                           NULL: any */
  uint64_t bytes;       /* publish: not used. Attach: it must have so many; 0:
                           any */
} mets_share_options;
#define METS_SHARE_OPTIONS_INIT \
  { sizeof(mets_share_options), NULL, NULL, 0 }

/* Makes the buffer at `address`, as mets_alloc returned it, a share, which the
 * process goes on to have at that address. Everything that writes to it must
 * have been put on streams named to libmets; the call waits for that, for metsd
 * and, if the buffer is in swap space, for memory.
 *
 * METS_INVALID_ARGUMENT: not the beginning of a buffer, smaller than
 * slab_threshold_bytes (such allocations share chunks), or the name or checksum
 * is malformed; METS_ALREADY_EXISTS: the name is taken; METS_REFUSED: too many
 * shares, or memory from before a restart of metsd; METS_UNAVAILABLE: metsd was
 * restarted meanwhile. The buffer stays what it was then. */
METS_EXPORT mets_status mets_share_publish(mets_device* device, void* address,
                                           const mets_share_options* options);

/* Maps a share. mets_find says its size. Waits for metsd only: no memory is
 * needed.
 *
 * METS_NOT_FOUND: nobody in the trust domain has published it (yet), or all have
 * detached it; METS_REFUSED: its size or checksum is another; the text has both.
 * METS_ALREADY_EXISTS: this process has it. */
METS_EXPORT mets_status mets_share_attach(mets_device* device,
                                          const mets_share_options* options,
                                          void** address);

/* The process does not need the share any more, at the address where it has it;
 * mets_free does the same. Waits for the work on streams that uses it.
 * METS_INVALID_ARGUMENT when no share begins there. */
METS_EXPORT mets_status mets_share_detach(mets_device* device, void* address);

/* ---- recordings ------------------------------------------------------------ */

/* A recording is a trace of what the process does with the device's buffers
 * (docs/trace_format.md): allocations, frees, ops and what they touch. One runs
 * at a time on a device; an operator starts them with `metsctl record`, the
 * program itself with mets_record_start. */

/* Records to a file of this process, compressed when the path ends in ".xz".
 * METS_INVALID_ARGUMENT when a recording runs; METS_FAILED when the file cannot
 * be created. */
METS_EXPORT mets_status mets_record_start(mets_device* device,
                                          const char* path);

/* Ends that recording and completes its file; blocks for the disk.
 * METS_INVALID_ARGUMENT when there is none; METS_FAILED when the file could not
 * be written, or ends early. */
METS_EXPORT mets_status mets_record_stop(mets_device* device);

/* Whether a recording runs, at the cost of one load. */
METS_EXPORT int mets_recording(mets_device* device);

/* ---- turns ----------------------------------------------------------------- */

/* When the working sets of several jobs do not fit into the device together,
 * metsd lets them compute in turn: mets_op_begin then waits, with nothing
 * pinned, until the job's turn comes. That wait does not count against
 * METS_WAIT. The next job's turn comes when the work has passed that this one's
 * ops and sections have left on the streams that libmets has been told of.
 *
 * A METS_GATED program, which announces no ops, encloses what it computes
 * instead: mets_gate_enter waits for the turn, and the job's turn does not end
 * before each thread that has entered has left. Sections nest; ops within one
 * do not wait. Enter and leave on the same thread; leaving does not
 * block.
 *
 * All buffers of such a program are held (METS_MOVABLE means METS_HELD). They
 * leave only while the turn has ended and a thread waits in mets_gate_enter; so
 * whatever no thread does while another waits there is safe, such as reading a
 * result after mets_gate_leave. mets_gate_enter returns once all of them are
 * back, or METS_OUT_OF_MEMORY when memory for them cannot be had within
 * METS_WAIT of the turn's beginning: the section has not begun then, and what
 * has come back stays. A program that keeps memory and waits nowhere keeps it
 * from others. */
METS_EXPORT mets_status mets_gate_enter(mets_device* device);
METS_EXPORT void mets_gate_leave(mets_device* device);

/* The program says that a step begins (a training's batch): what is between two
 * hints has the device in one piece, and what is live at a hint is known to
 * live across steps. No op may run meanwhile. Not needed, but good for programs
 * whose steps do not repeat. Never blocks. */
METS_EXPORT void mets_step_hint(mets_device* device);

/* ---- information ------------------------------------------------------------- */

typedef struct mets_stats {
  size_t size;                     /* sizeof(mets_stats) */
  uint64_t live_bytes;             /* of live allocations */
  uint64_t peak_live_bytes;
  uint64_t resident_bytes;         /* of live buffers with memory behind them */
  uint64_t cached_bytes;           /* kept for reuse */
  uint64_t swapped_bytes;
  uint64_t pinned_bytes;
  uint64_t held_bytes;
  uint64_t evicted_bytes_total;    /* copied to swap space */
  uint64_t restored_bytes_total;
  uint64_t clean_evictions_total;  /* buffers that left without a copy */
  uint64_t unobserved_accesses_total;
  uint64_t allocations_total;
  uint64_t cache_hits_total;       /* allocations without a request */
  uint64_t acquires_total;         /* requests to the daemon */
  uint64_t waits_total;            /* ops and allocations that waited */
  uint64_t wait_ns_total;
  uint64_t waited_ns_total;        /* time in which ops waited: for their turn,
                                      for memory, for buffers; at the same time
                                      counts once */
  uint64_t stalled_ns_total;       /* the part in which buffers had to come
                                      back */
} mets_stats_t;
#define METS_STATS_INIT \
  { sizeof(mets_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

METS_EXPORT mets_status mets_get_stats(mets_device* device,
                                       mets_stats_t* stats);

/* Resets peak_live_bytes to live_bytes. */
METS_EXPORT void mets_reset_peak(mets_device* device);

/* Free and total bytes as a program that asks the driver would want to see
 * them: total is the job's limit or the pool; free is what the job could still
 * get without anyone waiting, as far as the client knows. */
METS_EXPORT mets_status mets_memory_info(mets_device* device, uint64_t* free,
                                         uint64_t* total);

/* Where libmets writes lines for people (default: stderr). `level`: 0 notice,
 * 1 warning, 2 error. */
typedef void (*mets_log_function)(void* user, int level, const char* line);
METS_EXPORT void mets_set_log(mets_client* client, mets_log_function log,
                              void* user);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* METS_METS_H_ */
