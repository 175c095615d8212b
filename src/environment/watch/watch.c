// Tells who writes below some folders of a container while its tests run: what an agent left running, or the tests. It runs in a container of
// its own, in the process namespace of the other one and with nothing else of it.
//
//   watch FOLDER...        absolute, as the other container names them; none of them a link
//
// Lines on its standard output: "ready"; "." about once a second; "marked" after a line was read from its standard input, when folders that are
// new by then are watched too; "wrote WHO PROGRAM PATH", WHO being `left` (it ran before), or `unknown` (nobody can tell any more); "lost" when
// the kernel dropped something. It ends with 0 and the line "end" when its input ends; with 2 and a reason where the kernel cannot do this.
//
// The kernel (fanotify(7)) holds every start of a program, and every opening of a file in these folders, until it has been told to go on: so a
// process is looked at while it is there for certain. Linux 6.6 is the first that names files of an overlay; CAP_SYS_ADMIN is what it asks for,
// and CAP_SYS_PTRACE lets the folders be reached through /proc.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID AT_REMOVEDIR
#endif

enum { UNKNOWN = 0, TESTS = 1, LEFT = 2 };
enum { MAX_FOLDERS = 4096, TABLE = 1 << 16, MAX_TOLD = 200, PATH_ROOM = 1024 };

static int root, asked, told_fd, told = 0;
static unsigned long long began;

static struct { struct file_handle *handle; char path[PATH_ROOM]; } folder[MAX_FOLDERS];
static int folders = 0;

static struct { int pid; unsigned long long start; int who; } seen[TABLE];

static void say(const char *text) {
  size_t length = strlen(text);
  if (write(1, text, length) != (ssize_t)length) _exit(0);
}
static void fail(const char *what) {
  char line[256];
  snprintf(line, sizeof line, "cannot %s: %s\n", what, strerror(errno));
  say(line);
  _exit(2);
}

// Of /proc/PID/stat: name, parent, start in ticks. The name may hold anything, so the last bracket counts.
static int stat_of(int pid, char *name, size_t room, int *parent, unsigned long long *start) {
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  char *open_bracket = strchr(text, '('), *end = strrchr(text, ')');
  if (!open_bracket || !end || end < open_bracket) return 0;
  if (name) snprintf(name, room, "%.*s", (int)(end - open_bracket - 1), open_bracket + 1);
  char state;
  return sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, parent, start) == 3;
}

// Nothing inside can be the child of nobody but what the engine started: after the beginning that is the tests. A child of process 1 has lost
// its parent, and is known only where it was seen before.
static int who_is(int pid, int depth) {
  int parent;
  unsigned long long start;
  int at = pid & (TABLE - 1);
  if (pid <= 1 || depth > 64) return UNKNOWN;
  // Gone by now, and looked at while it was held.
  if (!stat_of(pid, NULL, 0, &parent, &start)) return seen[at].pid == pid ? seen[at].who : UNKNOWN;
  if (seen[at].pid == pid && seen[at].start == start && seen[at].who) return seen[at].who;
  int who = start <= began ? LEFT : parent == 0 ? TESTS : who_is(parent, depth + 1);
  seen[at].pid = pid;
  seen[at].start = start;
  seen[at].who = who;
  return who;
}

static void clean(char *text) {
  for (; *text; text++)
    if (*text <= ' ' || *text > '~') *text = '?';
}

static void tell(int pid, const char *path, const char *name) {
  // 0 is whoever is not in here: the engine.
  if (pid == 0 || pid == getpid() || told >= MAX_TOLD) return;
  int who = who_is(pid, 0);
  if (who == TESTS) return;
  char program[64] = "?", line[PATH_ROOM * 2], file[PATH_ROOM];
  int parent;
  unsigned long long start;
  stat_of(pid, program, sizeof program, &parent, &start);
  snprintf(file, sizeof file, "%s/%s", path, name);
  clean(program);
  clean(file);
  snprintf(line, sizeof line, "wrote %s %s %.300s\n", who == LEFT ? "left" : "unknown", program[0] ? program : "?", file);
  told++;
  say(line);
}

static struct file_handle *handle_of(int fd) {
  struct file_handle *handle = calloc(1, sizeof *handle + MAX_HANDLE_SZ);
  int mount;
  if (!handle) _exit(3);
  handle->handle_bytes = MAX_HANDLE_SZ;
  if (name_to_handle_at(fd, "", handle, &mount, AT_EMPTY_PATH | AT_HANDLE_FID) == 0) return handle;
  free(handle);
  return NULL;
}

static int inside(const char *path) {
  struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  return syscall(SYS_openat2, root, path, &how, sizeof how);
}

// Also what is below it.
static void mark(const char *path, int needed) {
  int fd = inside(path);
  if (fd < 0) {
    if (needed) fail("open a folder");
    return;
  }
  struct file_handle *handle = handle_of(fd);
  if (!handle) fail("name a folder");
  int known = 0;
  for (int i = 0; i < folders; i++)
    if (folder[i].handle->handle_bytes == handle->handle_bytes && !memcmp(folder[i].handle->f_handle, handle->f_handle, handle->handle_bytes)) known = 1;
  if (!known) {
    if (folders >= MAX_FOLDERS) { say("lost\n"); close(fd); free(handle); return; }
    if (fanotify_mark(asked, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_EVENT_ON_CHILD, fd, NULL) < 0) fail("hold what opens files");
    if (fanotify_mark(told_fd, FAN_MARK_ADD, FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_MODIFY | FAN_ATTRIB | FAN_ONDIR | FAN_EVENT_ON_CHILD, fd, NULL) < 0)
      fail("see what is written");
    folder[folders].handle = handle;
    snprintf(folder[folders].path, PATH_ROOM, "%s", path);
    folders++;
  } else free(handle);
  DIR *list = fdopendir(fd);
  if (!list) { close(fd); return; }
  struct dirent *entry;
  while ((entry = readdir(list))) {
    if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    char below[PATH_ROOM];
    if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below) mark(below, 0);
  }
  closedir(list);
}

static void answer_asked(void) {
  char buffer[8192] __attribute__((aligned(8)));
  ssize_t length = read(asked, buffer, sizeof buffer);
  if (length <= 0) return;
  for (struct fanotify_event_metadata *event = (void *)buffer; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
    if (event->fd < 0) continue;
    if (event->pid > 0) who_is(event->pid, 0);
    struct fanotify_response response = {.fd = event->fd, .response = FAN_ALLOW};
    if (write(asked, &response, sizeof response) < 0) say("lost\n");
    close(event->fd);
  }
}

static void read_told(int names) {
  char buffer[16384] __attribute__((aligned(8)));
  ssize_t length;
  while ((length = read(told_fd, buffer, sizeof buffer)) > 0)
    for (struct fanotify_event_metadata *event = (void *)buffer; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
      if (event->mask & FAN_Q_OVERFLOW) { say("lost\n"); continue; }
      struct fanotify_event_info_fid *info = (void *)(event + 1);
      if (event->event_len < sizeof *event + sizeof *info || info->hdr.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME) continue;
      struct file_handle *handle = (void *)info->handle;
      const char *name = (const char *)handle->f_handle + handle->handle_bytes;
      for (int i = 0; i < folders; i++) {
        if (folder[i].handle->handle_bytes != handle->handle_bytes || memcmp(folder[i].handle->f_handle, handle->f_handle, handle->handle_bytes)) continue;
        if (names) tell(event->pid, folder[i].path, name);
        if ((event->mask & FAN_ONDIR) && (event->mask & (FAN_CREATE | FAN_MOVED_TO))) {
          char below[PATH_ROOM];
          if (snprintf(below, sizeof below, "%s/%s", folder[i].path, name) < (int)sizeof below) mark(below, 0);
        }
        break;
      }
    }
}

static unsigned long long ticks_now(void) {
  double seconds = 0;
  FILE *file = fopen("/proc/uptime", "r");
  if (!file || fscanf(file, "%lf", &seconds) != 1) fail("read the time");
  fclose(file);
  return (unsigned long long)(seconds * sysconf(_SC_CLK_TCK));
}

int main(int count, char **argument) {
  signal(SIGPIPE, SIG_IGN);
  root = open("/proc/1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) fail("reach the other container");
  asked = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
  told_fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
  if (asked < 0 || told_fd < 0) fail("watch");
  for (int i = 1; i < count; i++) mark(argument[i], 1);
  if (fanotify_mark(asked, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_EXEC_PERM, AT_FDCWD, "/proc/1/root") < 0) fail("hold what starts programs");
  // What starts in the same tick, or in the next one, counts as having been there: whatever starts later came after the word "ready".
  began = ticks_now() + 1;
  struct pollfd wait[3] = {{.fd = 0, .events = POLLIN}, {.fd = asked, .events = POLLIN}, {.fd = told_fd, .events = POLLIN}};
  int ready = 0;
  for (;;) {
    int some = poll(wait, 3, ready ? 1000 : 10);
    if (some < 0 && errno != EINTR) fail("wait");
    if (wait[1].revents) answer_asked();
    if (wait[2].revents) read_told(1);
    if (!ready && ticks_now() > began) { ready = 1; say("ready\n"); }
    if (wait[0].revents) {
      char in[64];
      ssize_t length = read(0, in, sizeof in);
      if (length <= 0) break;
      for (int i = 1; i < count; i++) mark(argument[i], 0);
      read_told(1);
      say("marked\n");
    }
    if (some == 0 && ready) say(".\n");
  }
  read_told(1);
  say("end\n");
  return 0;
}
