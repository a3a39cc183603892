#ifndef ESDP_API_SYS_EXS_CONSTANTS_H_
#define ESDP_API_SYS_EXS_CONSTANTS_H_

/* The constants of sys/exs.h, which includes this. */

#define EXS_QHANDLE_INVALID (-1)
#define EXS_MHANDLE_INVALID (-1)
#define EXS_MHANDLE_UNREGISTERED (-2) /* in place of a handle: memory that nobody registered */

/* For exs_init. The low half is the size of exs_event_t, so that the library knows the caller's. */
#define EXS_VERSION1 0x10070
#define EXS_VERSION EXS_VERSION1

/* Flags of exs_mregister. */
#define EXS_MRF_SHARED 1    /* memory that processes share: accepted, makes no difference */
#define EXSX_MRF_READONLY 2 /* it is only sent from, and need not be writable */

/* Attributes of a queue, with the type of their value. */
#define EXS_QATTR_DEPTH 1  /* int: events, 1 to 2^19 */
#define EXS_QATTR_SIGNAL 2 /* exs_signal_t */
#define EXS_QATTR_EVENTS 3 /* int, to be read only: events that wait now */
#define EXS_QATTR_WAIT 4   /* int: EXS_WAIT_* */

#define EXS_SIG_DISABLE 0
#define EXS_SIG_ENABLE 1

#define EXS_WAIT_ADAPTIVE 0  /* polls for a moment, then sleeps */
#define EXS_WAIT_NOTIFY 1    /* sleeps at once */
#define EXS_WAIT_BUSY_POLL 2 /* polls */

#define EXS_EVTVEC_MAX 4096 /* so many events one exs_qdequeue takes at most */

/* Bits of exs_pollfd_t, with the values of poll(2). The last four are told without being asked for. */
#define EXS_POLLIN 0x0001
#define EXS_POLLPRI 0x0002
#define EXS_POLLOUT 0x0004
#define EXS_POLLERR 0x0008
#define EXS_POLLHUP 0x0010
#define EXS_POLLNVAL 0x0020
#define EXS_POLLRDHUP 0x2000

/* Kinds of the parts of an exs_xferfile_t. */
#define EXS_IOVEC 1
#define EXS_FDVEC 2

#define EXS_SHUT_WR 1 /* of exs_shutdown, as SHUT_WR */

#define EXSX_CLOSE_ABORT 1 /* flag of exs_close: drop what was not sent, reset the connection */

/* Selectors of exs_cancel. */
#define EXS_CAF_FILDES 1  /* all operations of the descriptor */
#define EXS_CAF_AHANDLE 2 /* those of them with this handle */

/* Options of level SOL_SOCKET. */
#define SO_ASYNC_RECV_ORDERED 0x4501 /* int: reads as 1, and cannot be turned off */
#define SO_ASYNC_SEND_TIMEOUT 0x4502 /* struct timeval or exsx_timeout_t: 0 turns it off */
#define SO_ASYNC_RECV_TIMEOUT 0x4503
#define EXS_TIMEOUT_ONCE 1 /* of exsx_timeout_t: not again before another operation is posted */

/* Options of level SOL_EXSX: uint64_t; from this size on transfers are zero-copy. The last one is only read: how many
 * transfers were copied since memory that nobody registered could not be registered for them. */
#define SOL_EXSX 0x4558
#define EXSX_SO_ZCOPY_SEND_MIN 1
#define EXSX_SO_ZCOPY_RECV_MIN 2
#define EXSX_SO_REGISTER_FAILURES 3

/* Types of events. */
#define EXS_EVT_POLL 1
#define EXS_EVT_CONNECT 2
#define EXS_EVT_ACCEPT 3
#define EXS_EVT_SEND 4
#define EXS_EVT_RECV 5
#define EXS_EVT_SENDMSG 6
#define EXS_EVT_RECVMSG 7
#define EXS_EVT_SENDFILE 8
#define EXS_EVT_SENDTIMEOUT \
  9 /* a notice: no operation ended in this direction for the time of the option */
#define EXS_EVT_RECVTIMEOUT 10
#define EXS_EVT_SHUTDOWN 11
#define EXS_EVT_CLOSE 12

/* Bits of exs_evt_flags. */
#define EXSX_EVF_EOF 1      /* receive: the peer has shut down, and nothing is left */
#define EXSX_EVF_ZEROCOPY 2 /* some bytes went by RDMA */
#define EXSX_EVF_COPIED 4   /* some bytes went through buffers of the library */
#define EXSX_EVF_URGENT 8   /* receive: its last byte is urgent */

#endif /* ESDP_API_SYS_EXS_CONSTANTS_H_ */
