/* mets_torch.h: libmets_torch.so, what stands between PyTorch and libmets.
 *
 * PyTorch calls the allocator's functions (CUDAPluggableAllocator); the Python
 * module mets.torch calls the others by ctypes, which gives the GIL away
 * meanwhile. It is built without PyTorch and serves every version that has the
 * pluggable allocator (2.11 was tried). libmets.so is found beside it, or by
 * METS_LIBRARY.
 *
 * Every function may be called from any thread.
 */
#ifndef METS_CLIENT_TORCH_METS_TORCH_H_
#define METS_CLIENT_TORCH_METS_TORCH_H_

#include "client/include/mets/mets.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- for mets.torch ------------------------------------------------------ */

/* Connects to metsd and attaches the GPU that PyTorch calls cuda:`device`;
 * before any context on it exists. Blocks for at most 10 s. Returns a
 * mets_status; the text of a failure is in mets_torch_last_error(). A process
 * has one device: another `device` later is METS_INVALID_ARGUMENT. */
METS_EXPORT int mets_torch_open(int device);

/* Text of the last failed call of this thread. Valid until its next call. */
METS_EXPORT const char* mets_torch_last_error(void);

/* As mets_gate_enter, mets_gate_leave, mets_step_hint and mets_get_stats of the
 * attached device; METS_INVALID_ARGUMENT, or nothing, before there is one. */
METS_EXPORT int mets_torch_enter(void);
METS_EXPORT void mets_torch_leave(void);
METS_EXPORT void mets_torch_hint(void);
METS_EXPORT int mets_torch_stats(mets_stats_t* stats);

/* ---- for PyTorch -----------------------------------------------------------
 */

/* Throws std::runtime_error when there is no memory. */
METS_EXPORT void* mets_torch_alloc(size_t bytes, int device, void* stream);
METS_EXPORT void mets_torch_free(void* address, size_t bytes, int device,
                                 void* stream);
METS_EXPORT void mets_torch_record_stream(void* address, void* stream);
/* Where PyTorch begins to capture a graph; throws std::runtime_error: a
 * captured graph uses its memory after it was freed, which METS does not know.
 */
METS_EXPORT void mets_torch_begin_pool(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* METS_CLIENT_TORCH_METS_TORCH_H_ */
