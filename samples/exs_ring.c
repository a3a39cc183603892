/*
 * The ES-API in C: a sender with more sends outstanding than it has buffers, as programs for that API are written.
 * It fills a ring of two buffers once and posts sixteen sends from it; whenever sixteen are out, or a post answers EAGAIN,
 * it takes half of their events. Both ends are in this process.
 *
 *     cc exs_ring.c $(pkg-config --cflags --libs libexs)
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/exs.h>

#define BUFFERS 2
#define BUFFER_BYTES (1024 * 1024)
#define OUTSTANDING 16
#define SENDS 64

static int check(int answer, const char *what)
{
  if (answer < 0) {
    perror(what);
    exit(1);
  }
  return answer;
}

/* The next event, which has to be a good one. */
static exs_event_t next(exs_qhandle_t queue)
{
  exs_event_t event;
  check(exs_qdequeue(queue, &event, -1, NULL), "exs_qdequeue");
  if (event.exs_evt_errno != 0) {
    fprintf(stderr, "event %d: %s\n", event.exs_evt_type, strerror(event.exs_evt_errno));
    exit(1);
  }
  return event;
}

/* Two sockets that are connected with each other. */
static void connect_pair(exs_qhandle_t queue, int *sender, int *receiver)
{
  struct sockaddr_in address;
  socklen_t len = sizeof(address);
  int listener = check(exs_socket(AF_INET, SOCK_STREAM, 0), "exs_socket");
  int i;

  memset(&address, 0, sizeof(address));
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(exs_bind(listener, (struct sockaddr *)&address, len), "exs_bind");
  check(exs_listen(listener, 1), "exs_listen");
  check(exs_getsockname(listener, (struct sockaddr *)&address, &len), "exs_getsockname");

  *sender = check(exs_socket(AF_INET, SOCK_STREAM, 0), "exs_socket");
  check(exs_accept(listener, NULL, 1, 0, queue, NULL), "exs_accept");
  check(exs_connect(*sender, (struct sockaddr *)&address, len, 0, queue, NULL), "exs_connect");
  for (i = 0; i < 2; ++i) {
    exs_event_t event = next(queue);
    if (event.exs_evt_type == EXS_EVT_ACCEPT) *receiver = event.exs_evt_union.exs_evt_accept.exs_evt_newfd;
  }
  check(exs_close(listener, 0, EXS_QHANDLE_INVALID, NULL), "exs_close");
}

int main(void)
{
  exs_event_t events[OUTSTANDING];
  exs_qhandle_t sends, receives;
  exs_mhandle_t from_handle, to_handle;
  char *from = malloc(BUFFERS * BUFFER_BYTES);
  char *to = calloc(SENDS, BUFFER_BYTES);
  int sender = -1, receiver = -1;
  int sent = 0, pending = 0, zero_copy = 0, i;

  check(exs_init(EXS_VERSION1), "exs_init");
  sends = check(exs_qcreate(OUTSTANDING), "exs_qcreate");
  receives = check(exs_qcreate(SENDS), "exs_qcreate");
  memset(from, 'x', BUFFERS * BUFFER_BYTES);
  from_handle = check(exs_mregister(from, BUFFERS * BUFFER_BYTES, 0), "exs_mregister");
  to_handle = check(exs_mregister(to, (size_t)SENDS * BUFFER_BYTES, 0), "exs_mregister");
  connect_pair(sends, &sender, &receiver);
  for (i = 0; i < SENDS; ++i) {
    check(exs_recv(receiver, to + i * BUFFER_BYTES, BUFFER_BYTES, MSG_WAITALL, receives, NULL, to_handle), "exs_recv");
  }

  while (sent < SENDS || pending > 0) {
    char *at = from + (sent % BUFFERS) * BUFFER_BYTES;
    if (sent < SENDS && exs_send(sender, at, BUFFER_BYTES, 0, sends, at, from_handle) == 0) {
      ++sent;
      ++pending;
      continue;
    }
    if (sent < SENDS && errno != EAGAIN) check(-1, "exs_send");
    /* The queue is full, or all is sent: exactly half of what is out, and at the end the rest. */
    i = pending > 1 ? pending / 2 : 1;
    check(exs_qdequeue(sends, events, -i, NULL), "exs_qdequeue");
    for (pending -= i; i > 0; --i) zero_copy += (events[i - 1].exs_evt_flags & EXSX_EVF_ZEROCOPY) != 0;
  }
  for (i = 0; i < SENDS; ++i) next(receives);
  printf("%d sends of 1 MiB from a ring of %d buffers, %d of them zero-copy\n", sent, BUFFERS, zero_copy);
  return memchr(to, 0, (size_t)SENDS * BUFFER_BYTES) == NULL ? 0 : 1; /* nothing has to be closed */
}
