#ifndef ESDP_API_SYS_EXS_H_
#define ESDP_API_SYS_EXS_H_

#include "sys/exs_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The Extended Sockets API (ES-API) in C, over the Sockets Direct Protocol: libexs, link with -lexs.
 *
 * Memory is registered, operations are posted, results come as events from a queue. A post answers 0 when it was
 * accepted: then exactly one event follows (of exs_accept: one for each connection). Otherwise it answers -1 with
 * errno, nothing has changed, and no event follows. From the post to the event the buffer is the library's.
 *
 *   Threads:  any thread may call anything; the library's own threads block all signals.
 *   Blocks:   exs_qdequeue; exs_init, exs_mregister and exs_listen as long as the fabric takes. No other call.
 *   fork:     a child starts with exs_init. Before, every call there answers EPERM, and afterwards every handle of the
 *             parent is EBADF.
 *   exit:     needs no teardown. What was accepted has up to a second to leave.
 *
 * Every call, -1 with errno:
 *   ENXIO      exs_init was not called             EBADF    the number or handle is closed, stale or none at all
 *   ENOTSOCK   the number is no socket             EINVAL   an unknown flag or a value outside its range
 *   EOPNOTSUPP a socket of another kind than TCP,  EFAULT   NULL, or a range that leaves its registered memory
 *              or what is not built                ENOBUFS  no memory
 * An unconnected TCP socket of socket(2) becomes one of this library in exs_connect, exs_bind, exs_listen,
 * exs_setsockopt; from one that listens exs_accept takes connections, also such as are no SDP; on one that is connected
 * what is posted is copied.
 * Every post:
 *   EAGAIN     the queue has no slot: take events, post again at once
 *   ENOTCONN, EPIPE, EPERM   not connected; shut down; used in the child of a fork
 *   or what the connection ended with: ECONNRESET, ETIMEDOUT, ECONNABORTED, EPROTO, EACCES, ENODEV
 * The same are the errors of events, and ECANCELED: exs_cancel, or exs_close of the socket.
 */

/*
 * Opens the library; `version` is EXS_VERSION1, and is the answer. Further calls answer the same. The fabric is "auto",
 * or what the environment has in EXS_FABRIC. EINVAL: another version. ENODEV: that fabric is not there.
 */
int exs_init(int version);
/* The same over a named fabric: "auto", "qpip", "verbs", "verbs:DEVICE". EBUSY: another one is open. */
int exsx_init(int version, const char* fabric);

/* A queue of up to `depth` events (1 to 2^19), or EXS_QHANDLE_INVALID. EMFILE: no descriptor is left. */
exs_qhandle_t exs_qcreate(int depth);
/* Ends a queue; events in it are lost. EBUSY: operations name it, or a thread waits in it. */
int exs_qdelete(exs_qhandle_t queue);
/*
 * Takes events, oldest first. `count` > 0: up to so many, once there is one. -n: exactly n. 0: answers 0 at once.
 * Returns how many. `timeout`: NULL is without end, zero only looks. When it has passed the answer is 0, with -n it is
 * ETIMEDOUT. EINTR: a signal came, and there is a timeout or its handler has no SA_RESTART, as with recv. With -1 no
 * event is lost. EINVAL: n is more than the depth or than EXS_EVTVEC_MAX, or the timeout is negative.
 */
int exs_qdequeue(exs_qhandle_t queue, exs_event_t* events, int count, struct timeval* timeout);
/*
 * Sets or reads an EXS_QATTR_*. `len` is that of the value; exs_qstatus lowers it to what it wrote. EBUSY: the depth
 * is less than what is outstanding; the way of waiting while operations are outstanding. EOPNOTSUPP: EXS_QATTR_EVENTS is
 * only read.
 */
int exs_qmodify(exs_qhandle_t queue, int attribute, const void* value, size_t len);
int exs_qstatus(exs_qhandle_t queue, int attribute, void* value, size_t* len);

/* Registers memory: a handle, or EXS_MHANDLE_INVALID. ENOMEM: the limit of locked memory. EINVAL: NULL or no byte. */
exs_mhandle_t exs_mregister(void* address, size_t len, int flags);
/* EBUSY: an operation uses it. */
int exs_mderegister(exs_mhandle_t memory);

/*
 * A socket: AF_INET or AF_INET6, SOCK_STREAM. The number is a descriptor of the process, close-on-exec, on which read,
 * write, poll and their kind work too (man 7 exs). EAFNOSUPPORT, EPROTONOSUPPORT, EMFILE.
 */
int exs_socket(int family, int type, int protocol);
int exs_bind(int fd, const struct sockaddr* address, socklen_t len);
int exs_listen(int fd, int backlog); /* EADDRINUSE */
int exs_getsockname(int fd, struct sockaddr* address, socklen_t* len);
int exs_getpeername(int fd, struct sockaddr* address, socklen_t* len);
/* SOL_SOCKET: SO_ASYNC_*, SO_LINGER, SO_REUSEADDR (always on), SO_TYPE, SO_DOMAIN, SO_ERROR (0), SO_ACCEPTCONN, the last
 * four only to be read. IPPROTO_TCP: TCP_NODELAY (always on). SOL_EXSX. Others: ENOPROTOOPT. */
int exs_setsockopt(int fd, int level, int name, const void* value, socklen_t len);
int exs_getsockopt(int fd, int level, int name, void* value, socklen_t* len);
/* F_GETFD, F_SETFD, F_GETFL, F_SETFL: O_NONBLOCK is for calls of libc, and no post. EINVAL: others. */
int exs_fcntl(int fd, int command, long argument);

/* Posts; EXS_EVT_CONNECT. ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT in the event. `flags` is 0. */
int exs_connect(int fd, const struct sockaddr* address, socklen_t len, int flags,
                exs_qhandle_t queue, exs_ahandle_t handle);
/*
 * Posts; an EXS_EVT_ACCEPT for each of `count` connections, the i-th with its addresses in addresses[i], unless
 * `addresses` is NULL. An event with an error is the last one, except EMFILE: that connection is dropped. `flags` is 0.
 */
int exs_accept(int fd, exs_acceptaddr_t* addresses, int count, int flags, exs_qhandle_t queue,
               exs_ahandle_t handle);

/* Posts; EXS_EVT_SEND. Flags: MSG_OOB (the last byte is urgent); MSG_NOSIGNAL, MSG_DONTWAIT: always so.
 * With EXS_MHANDLE_UNREGISTERED memory is copied or registered for the time of the operation, 1 MiB at a time. */
int exs_send(int fd, const void* buffer, size_t len, int flags, exs_qhandle_t queue,
             exs_ahandle_t handle, exs_mhandle_t memory);
/*
 * Posts; EXS_EVT_RECV with 1 to len bytes, or none and EXSX_EVF_EOF. Flags: MSG_WAITALL, MSG_DONTWAIT (always so),
 * MSG_PEEK: the next receive gets the same bytes, of which 64 KiB are seen at most. EOPNOTSUPP: MSG_OOB.
 */
int exs_recv(int fd, void* buffer, size_t len, int flags, exs_qhandle_t queue, exs_ahandle_t handle,
             exs_mhandle_t memory);
/* The same for several ranges, each with its memory handle; EXS_EVT_SENDMSG, EXS_EVT_RECVMSG. */
int exs_sendmsg(int fd, exs_msghdr_t* message, int flags, exs_qhandle_t queue,
                exs_ahandle_t handle);
int exs_recvmsg(int fd, exs_msghdr_t* message, int flags, exs_qhandle_t queue,
                exs_ahandle_t handle);
/* Posts; EXS_EVT_SENDFILE. EIO in the event: a file was shorter, its length tells what was sent. `flags` is 0. */
int exs_sendfile(int fd, exs_xferfile_t* file, int flags, exs_qhandle_t queue,
                 exs_ahandle_t handle);

/*
 * Posts; EXS_EVT_POLL once one of the descriptors is ready; one of exs_listen is while a connection waits. EINVAL: fewer
 * than 1 or more than 65536. `flags` is 0.
 */
int exs_poll(exs_pollfd_t* fds, int count, int flags, exs_qhandle_t queue, exs_ahandle_t handle);
/*
 * Asks operations to end: with EXS_CAF_FILDES those of the descriptor, with EXS_CAF_AHANDLE those of them that have
 * `handle`. Each still has its event, with ECANCELED when the cancel came in time. Returns how many were asked.
 */
int exs_cancel(int fd, exs_ahandle_t handle, int flags);

/* Posts; EXS_EVT_SHUTDOWN when the peer has been told, after all that was posted. `how` is EXS_SHUT_WR; `flags` 0. */
int exs_shutdown(int fd, int how, int flags, exs_qhandle_t queue, exs_ahandle_t handle);
/*
 * Posts; EXS_EVT_CLOSE, the last event of the socket: sends have left, receives have ended with ECANCELED. The number is
 * free once the event is taken. With EXS_QHANDLE_INVALID there is no event, and the number is free at once. Flags:
 * EXSX_CLOSE_ABORT.
 */
int exs_close(int fd, int flags, exs_qhandle_t queue, exs_ahandle_t handle);

#ifdef __cplusplus
}
#endif

#endif /* ESDP_API_SYS_EXS_H_ */
