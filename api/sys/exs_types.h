#ifndef ESDP_API_SYS_EXS_TYPES_H_
#define ESDP_API_SYS_EXS_TYPES_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "sys/exs_constants.h"

/* The types of sys/exs.h, which includes this. Lengths are in bytes. What is reserved has to be zero. */

/* Old programs expect it from this header: bytes of a page. */
#ifndef NBPG
#define NBPG 4096
#endif

typedef void* exs_ahandle_t; /* the application's own, comes back in the event */
typedef int exs_qhandle_t;   /* of a queue: its descriptor, readable while events wait */
typedef int exs_mhandle_t;   /* of registered memory */

typedef struct exs_iovec {
  void* exs_iov_base;
  uint64_t exs_iov_len;
  exs_mhandle_t exs_iov_mhandle;
  int exs_iov_unused;
  uint64_t exs_iov_reserved[4];
} exs_iovec_t;

typedef struct exs_msghdr { /* has to stay until the event; the vector is copied */
  exs_iovec_t* exs_msg_iov;
  uint64_t exs_msg_iovlen; /* 0 to 1024 */
  uint64_t exs_msg_reserved[4];
} exs_msghdr_t;

typedef struct exs_fdvec { /* a range of a file that pread(2) reads */
  int exs_fdv_fd;          /* may be closed once it is posted */
  int exs_fdv_unused;
  uint64_t exs_fdv_offset;
  uint64_t exs_fdv_len;
  uint64_t exs_fdv_reserved[4];
} exs_fdvec_t;

typedef struct exsx_xferpart {
  int exsx_xfp_kind; /* EXS_IOVEC or EXS_FDVEC */
  int exsx_xfp_unused;
  union {
    exs_iovec_t exsx_xfp_iov;
    exs_fdvec_t exsx_xfp_fdv;
  } exsx_xfp;
} exsx_xferpart_t;

typedef struct exs_xferfile { /* has to stay until the event; the parts are copied */
  exsx_xferpart_t* exs_xf_parts;
  uint64_t exs_xf_count; /* 1 to 1024 */
  uint64_t exs_xf_reserved[4];
} exs_xferfile_t;

typedef struct exs_acceptaddr { /* filled when the event is taken */
  struct sockaddr_storage exs_aa_local;
  struct sockaddr_storage exs_aa_remote;
  socklen_t exs_aa_local_len;
  socklen_t exs_aa_remote_len;
  uint64_t exs_aa_reserved[4];
} exs_acceptaddr_t;

typedef struct exs_pollfd {
  int exs_pfd_fd; /* of exs_socket or any other descriptor; a negative one is passed over */
  short exs_pfd_events;
  short exs_pfd_revents;
  uint64_t exs_pfd_reserved[4];
} exs_pollfd_t;

typedef struct exs_signal {
  int exs_sig_number;
  int exs_sig_state; /* EXS_SIG_ENABLE: sent once when events wait; then it is EXS_SIG_DISABLE */
  uint64_t exs_sig_reserved[4];
} exs_signal_t;

typedef struct exsx_timeout {
  struct timeval exsx_to_period;
  int exsx_to_flags; /* EXS_TIMEOUT_ONCE */
  int exsx_to_unused;
  uint64_t exsx_to_reserved[4];
} exsx_timeout_t;

typedef struct exs_evt_xfer { /* SEND, RECV; SENDTIMEOUT and RECVTIMEOUT have nothing */
  void* exs_evt_buffer;
  uint64_t exs_evt_length; /* done, also with an error */
  exs_mhandle_t exs_evt_mhandle;
  int exs_evt_unused;
  uint64_t exs_evt_reserved[4];
} exs_evt_xfer_t;

typedef struct exs_evt_xfermsg { /* SENDMSG, RECVMSG */
  exs_msghdr_t* exs_evt_msg;
  uint64_t exs_evt_length;
  uint64_t exs_evt_reserved[4];
} exs_evt_xfermsg_t;

typedef struct exs_evt_xferfile { /* SENDFILE */
  exs_xferfile_t* exs_evt_file;
  uint64_t exs_evt_length;
  uint64_t exs_evt_reserved[4];
} exs_evt_xferfile_t;

typedef struct exs_evt_accept { /* ACCEPT */
  int exs_evt_newfd;            /* -1 with an error */
  int exs_evt_unused;
  exs_acceptaddr_t* exs_evt_addresses; /* where they were written; NULL if they were not wanted */
  uint64_t exs_evt_reserved[4];
} exs_evt_accept_t;

typedef struct exs_evt_poll { /* POLL */
  exs_pollfd_t* exs_evt_fds;
  int exs_evt_ready; /* so many have exs_pfd_revents */
  int exs_evt_unused;
  uint64_t exs_evt_reserved[4];
} exs_evt_poll_t;

typedef struct exs_event {
  int exs_evt_type; /* EXS_EVT_* */
  int exs_evt_socket;
  int exs_evt_errno; /* 0: all of it was done */
  unsigned int exs_evt_flags;
  exs_ahandle_t exs_evt_ahandle;
  union {
    exs_evt_xfer_t exs_evt_xfer;
    exs_evt_xfermsg_t exs_evt_xfermsg;
    exs_evt_xferfile_t exs_evt_xferfile;
    exs_evt_accept_t exs_evt_accept;
    exs_evt_poll_t exs_evt_poll;
  } exs_evt_union;
  uint64_t exs_evt_reserved[4];
} exs_event_t;

/* The sizes are a part of the binary interface: where one differs, an array has a negative size. */
#define EXSX_CHECK_SIZE(type, size) \
  typedef char exsx_##type##_has_##size[sizeof(type) == (size) ? 1 : -1]
EXSX_CHECK_SIZE(exs_iovec_t, 56);
EXSX_CHECK_SIZE(exs_msghdr_t, 48);
EXSX_CHECK_SIZE(exs_fdvec_t, 56);
EXSX_CHECK_SIZE(exsx_xferpart_t, 64);
EXSX_CHECK_SIZE(exs_xferfile_t, 48);
EXSX_CHECK_SIZE(exs_acceptaddr_t, 296);
EXSX_CHECK_SIZE(exs_pollfd_t, 40);
EXSX_CHECK_SIZE(exs_signal_t, 40);
EXSX_CHECK_SIZE(exsx_timeout_t, 56);
EXSX_CHECK_SIZE(exs_evt_xfer_t, 56);
EXSX_CHECK_SIZE(exs_evt_xfermsg_t, 48);
EXSX_CHECK_SIZE(exs_evt_xferfile_t, 48);
EXSX_CHECK_SIZE(exs_evt_accept_t, 48);
EXSX_CHECK_SIZE(exs_evt_poll_t, 48);
EXSX_CHECK_SIZE(exs_event_t, 112);

#endif /* ESDP_API_SYS_EXS_TYPES_H_ */
