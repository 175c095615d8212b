// Carries TCP connections out of a container that has no network. The relay runs in a container of its own, which shares the network namespace
// of the agent's container and nothing else, so the agent can connect to it and can neither see nor end it.
//
//   relay PORT
//
// The relay listens on 127.0.0.1:PORT and speaks frames on its standard input and output (carrier.ts has the same table):
//   id u32, type u8, length u32 (big endian), then `length` bytes.
// Each side may have sent at most WINDOW bytes of a connection that the other has not consumed; CREDIT says how many it has.
// The relay ends with 0 when its input ends, and with 2 when its input is no frames.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READY = 1, OPEN = 2, DATA = 3, END = 4, RESET = 5, CREDIT = 6 };
enum { HEADER = 9, MAX_PAYLOAD = 32768, UP_WINDOW = 262144, DOWN_WINDOW = 65536, MAX_CONNECTIONS = 1024, OUT_LIMIT = 1048576 };

struct connection {
  uint32_t id;
  int fd;              // -1: the place is free
  uint32_t may_send;   // bytes that the host still takes
  int read_ended;      // the program has sent its last byte, and END has left
  int end_wanted;      // the host has sent its last byte
  int write_ended;
  unsigned char *down; // what the program has not taken yet; at most DOWN_WINDOW
  uint32_t down_start, down_length;
};

static struct connection table[MAX_CONNECTIONS];
static uint32_t next_id = 1;
static int open_count = 0;

static unsigned char *out;
static size_t out_start = 0, out_length = 0, out_size = 0;
static unsigned char in[HEADER + MAX_PAYLOAD];
static size_t in_length = 0;

static void *needed(void *memory) {
  if (!memory) _exit(3);
  return memory;
}

static void put32(unsigned char *to, uint32_t value) {
  to[0] = value >> 24; to[1] = value >> 16; to[2] = value >> 8; to[3] = value;
}
static uint32_t get32(const unsigned char *from) {
  return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void send_frame(uint32_t id, int type, const unsigned char *payload, uint32_t length) {
  size_t all = HEADER + length;
  if (out_start > 0 && out_start + out_length + all > out_size) {
    memmove(out, out + out_start, out_length);
    out_start = 0;
  }
  if (out_length + all > out_size) {
    out_size = (out_length + all) * 2;
    out = needed(realloc(out, out_size));
  }
  unsigned char *at = out + out_start + out_length;
  put32(at, id); at[4] = type; put32(at + 5, length);
  if (length) memcpy(at + HEADER, payload, length);
  out_length += all;
}

static void credit(uint32_t id, uint32_t bytes) {
  unsigned char payload[4];
  put32(payload, bytes);
  send_frame(id, CREDIT, payload, 4);
}

static void drop(struct connection *c) {
  close(c->fd);
  free(c->down);
  memset(c, 0, sizeof *c);
  c->fd = -1;
  open_count--;
}

static void fail(struct connection *c) {
  send_frame(c->id, RESET, NULL, 0);
  drop(c);
}

static void finish_if_done(struct connection *c) {
  if (c->read_ended && c->write_ended) drop(c);
}

static void nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static void welcome(int listener) {
  while (open_count < MAX_CONNECTIONS) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = table;
    while (c->fd >= 0) c++;
    c->id = next_id++;
    c->fd = fd;
    c->may_send = UP_WINDOW;
    open_count++;
    send_frame(c->id, OPEN, NULL, 0);
  }
}

static void read_program(struct connection *c) {
  unsigned char buffer[MAX_PAYLOAD];
  size_t want = c->may_send < MAX_PAYLOAD ? c->may_send : MAX_PAYLOAD;
  ssize_t got = read(c->fd, buffer, want);
  if (got > 0) {
    c->may_send -= got;
    send_frame(c->id, DATA, buffer, got);
  } else if (got == 0) {
    c->read_ended = 1;
    send_frame(c->id, END, NULL, 0);
    finish_if_done(c);
  } else if (errno != EAGAIN && errno != EINTR) fail(c);
}

static void write_program(struct connection *c) {
  while (c->down_length > 0) {
    ssize_t done = send(c->fd, c->down + c->down_start, c->down_length, MSG_NOSIGNAL);
    if (done < 0) {
      if (errno != EAGAIN && errno != EINTR) fail(c);
      return;
    }
    c->down_start += done;
    c->down_length -= done;
    credit(c->id, done);
  }
  free(c->down);
  c->down = NULL;
  c->down_start = 0;
  if (c->end_wanted && !c->write_ended) {
    c->write_ended = 1;
    shutdown(c->fd, SHUT_WR);
    finish_if_done(c);
  }
}

static struct connection *find(uint32_t id) {
  for (struct connection *c = table; c < table + MAX_CONNECTIONS; c++)
    if (c->fd >= 0 && c->id == id) return c;
  return NULL;
}

static void obey(uint32_t id, int type, const unsigned char *payload, uint32_t length) {
  struct connection *c = find(id);
  if (type != DATA && type != END && type != RESET && type != CREDIT) _exit(2);
  if (!c) return; // it has ended here while the frame was on its way
  if (type == DATA) {
    if (c->down_length + length > DOWN_WINDOW || c->end_wanted) _exit(2);
    if (!c->down) { c->down = needed(malloc(DOWN_WINDOW)); c->down_start = 0; }
    if (c->down_start + c->down_length + length > DOWN_WINDOW) {
      memmove(c->down, c->down + c->down_start, c->down_length);
      c->down_start = 0;
    }
    memcpy(c->down + c->down_start + c->down_length, payload, length);
    c->down_length += length;
    write_program(c);
  } else if (type == END) {
    c->end_wanted = 1;
    write_program(c);
  } else if (type == RESET) {
    struct linger hard = {1, 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    drop(c);
  } else {
    if (length != 4) _exit(2);
    c->may_send += get32(payload);
    if (c->may_send > UP_WINDOW) _exit(2);
  }
}

static void read_host(void) {
  ssize_t got = read(0, in + in_length, sizeof in - in_length);
  if (got == 0) _exit(0);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    _exit(0);
  }
  in_length += got;
  size_t at = 0;
  while (in_length - at >= HEADER) {
    uint32_t length = get32(in + at + 5);
    if (length > MAX_PAYLOAD) _exit(2);
    if (in_length - at < HEADER + length) break;
    obey(get32(in + at), in[at + 4], in + at + HEADER, length);
    at += HEADER + length;
  }
  memmove(in, in + at, in_length - at);
  in_length -= at;
}

static void write_host(void) {
  ssize_t done = write(1, out + out_start, out_length);
  if (done < 0) {
    if (errno != EAGAIN && errno != EINTR) _exit(0);
    return;
  }
  out_start += done;
  out_length -= done;
  if (out_length == 0) out_start = 0;
}

static int listen_on(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 1024) < 0) {
    static const char text[] = "the port cannot be opened\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(4);
    _exit(4);
  }
  return fd;
}

int main(int argc, char **argv) {
  if (argc != 2) return 1;
  signal(SIGPIPE, SIG_IGN);
  for (struct connection *c = table; c < table + MAX_CONNECTIONS; c++) c->fd = -1;
  int listener = listen_on(atoi(argv[1]));
  nonblocking(0);
  nonblocking(1);
  send_frame(0, READY, NULL, 0);
  static struct pollfd fds[MAX_CONNECTIONS + 3];
  static struct connection *of[MAX_CONNECTIONS + 3];
  for (;;) {
    int count = 3;
    int room = out_length < OUT_LIMIT;
    fds[0] = (struct pollfd){.fd = 0, .events = room ? POLLIN : 0};
    fds[1] = (struct pollfd){.fd = 1, .events = out_length > 0 ? POLLOUT : 0};
    fds[2] = (struct pollfd){.fd = room && open_count < MAX_CONNECTIONS ? listener : -1, .events = POLLIN};
    for (struct connection *c = table; c < table + MAX_CONNECTIONS; c++) {
      if (c->fd < 0) continue;
      int events = (room && !c->read_ended && c->may_send > 0 ? POLLIN : 0) | (c->down_length > 0 ? POLLOUT : 0);
      // Without an event that is waited for, a connection that broke would wake the loop for ever.
      fds[count] = (struct pollfd){.fd = events ? c->fd : -1, .events = events};
      of[count++] = c;
    }
    if (poll(fds, count, -1) < 0 && errno != EINTR) return 5;
    if (fds[1].revents) write_host();
    for (int i = 3; i < count; i++) {
      if (fds[i].revents & POLLOUT) write_program(of[i]);
      if (of[i]->fd >= 0 && of[i]->fd == fds[i].fd && (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) && (fds[i].events & POLLIN))
        read_program(of[i]);
      else if (of[i]->fd >= 0 && of[i]->fd == fds[i].fd && (fds[i].revents & POLLERR)) fail(of[i]);
    }
    if (fds[2].revents) welcome(listener);
    if (fds[0].revents) read_host();
  }
}
