/* A driver's library that fails when a test says so, and otherwise is the look-alike: every call goes on to
 * it. faulty_hip fails as HIP does: the call's value is the thread's last error until somebody takes it.
 * faulty_cuda is a libcuda over the same devices. What destroys something has destroyed it when it answers
 * with a failure; every other call has done nothing.
 *
 * Not thread safe against being armed: one thread arms while no other calls.
 */
#ifndef KILN_FAULTY_H
#define KILN_FAULTY_H

#ifdef __cplusplus
extern "C" {
#endif

/* From now on the `nth` call of `entry` (from 1) and the `times` - 1 after it fail with `error`; all from the
 * nth on where `times` is 0. Counting starts again. A null entry: none fails. Entries that return a text
 * return null. */
void faulty_arm(const char* entry, int nth, int times, int error);

/* Not 0: from the next faulty_arm on, a call that fails has done its work, as when the failure is an earlier
 * one's. */
void faulty_fail_when_done(int done);

/* Since the last faulty_arm. */
int faulty_calls(const char* entry);
int faulty_injected(void);

/* What was made and not destroyed. */
typedef struct faulty_live {
    int modules, allocations, streams, events, graphs, executables;
} faulty_live;
void faulty_count_live(faulty_live* live);

/* The calling thread's state, asked without disturbing it. With CUDA there is no last error, and no current
 * device (-1) where no context is current. */
int faulty_last_error(void);
int faulty_capture_mode(void);
int faulty_current_device(void);

/* Makes a device current, or with CUDA its context; none (-1). Is no call that is counted. */
void faulty_set_current_device(int device);

/* The current device as if new, after a fault; of faulty_cuda alone: faulty_hip has hipDeviceReset. */
int faulty_reset_device(void);

#ifdef __cplusplus
}
#endif

#endif
