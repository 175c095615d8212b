// Tells who writes below some folders of a container while its tests run: what an agent left running, a program that the agent brought, or the
// tests. The program runs in a container of its own, in the process namespace of the other one and with nothing else of it.
//
//   watch SINCE WORKDIR FOLDER...        folders are absolute, as the other container names them; none of them a link
//
// Files that are younger than SINCE (seconds) and older than the watch are the agent's, unless they are below a folder that is watched; so are
// programs that are made below WORKDIR meanwhile. Files of the system are nobody's: who changed those is known from elsewhere.
//
// Lines on its standard output: "ready"; "." about once a second; "marked" after a line was read from its standard input, when folders that are
// new by then are watched too; "wrote WHO PROGRAM PATH", WHO being `left` (it ran before), `program` (it is one of the agent's, or was started by
// one), `script` (test.sh itself wrote a reward, or its own file), `tests` (so did a process that it started, or an interpreter wrote code), or
// `unknown` (nobody can tell any more: or it wrote a reward by another name of the file, which shows by its times alone); PATH is "-" of the first
// program of the agent's that runs; "lost" when the kernel dropped something. The program ends with 0 and the line "end" when its input ends; with
// 2 and a reason where the kernel cannot do this.
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
#include <time.h>
#include <unistd.h>

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID AT_REMOVEDIR
#endif

enum { UNKNOWN = 0, TESTS = 1, LEFT = 2, PROGRAM = 3 };
static const char *const WHO[] = {"unknown", "tests", "left", "program"};
enum { MAX_FOLDERS = 4096, TABLE = 1 << 16, MAX_TOLD = 200, PATH_ROOM = 1024, ARGS_ROOM = 8192 };

static int root, asked, told_fd, told = 0;
static unsigned long long began;
static time_t since, until;
static const char *workdir;
static char **asked_for;
static int asked_count;

static struct { struct file_handle *handle; int above; char path[PATH_ROOM]; } folder[MAX_FOLDERS];
static int folders = 0;

// `script`: what it was when it last opened a file in a folder that is watched, and was held: 1 the script of the tests, 2 an interpreter of
// another one.
static struct { int pid; unsigned long long start; int who, script; } seen[TABLE];

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

// The text of /proc/PID/NAME, as far as there is room, with a zero byte behind it; its length, or 0 where there is none.
static ssize_t proc_text(int pid, const char *name, char *text, size_t room) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = read(fd, text, room - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  return length;
}

// Fields of /proc/PID/stat: name, parent, start in ticks. The name may hold anything, so the last bracket counts.
static int stat_of(int pid, char *name, size_t room, int *parent, unsigned long long *start) {
  char text[1024];
  if (!proc_text(pid, "stat", text, sizeof text)) return 0;
  char *open_bracket = strchr(text, '('), *end = strrchr(text, ')');
  if (!open_bracket || !end || end < open_bracket) return 0;
  if (name) snprintf(name, room, "%.*s", (int)(end - open_bracket - 1), open_bracket + 1);
  char state;
  return sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, parent, start) == 3;
}

static int is_below(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return length > 1 && !strncmp(path, folder, length) && path[length] == '/';
}

static int is_of_system(const char *path) {
  static const char *const systems[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/proc", "/dev"};
  if (is_below(path, workdir)) return 0;
  for (unsigned i = 0; i < sizeof systems / sizeof *systems; i++)
    if (is_below(path, systems[i])) return 1;
  // The engine starts a process from a file of no folder.
  return path[0] != '/' || !strncmp(path, "/memfd:", 7);
}

// Whether the agent has written the file.
static int is_given(const char *path, const struct stat *file) {
  for (int i = 0; i < asked_count; i++)
    if (is_below(path, asked_for[i])) return 0;
  if (is_of_system(path) || file->st_ctim.tv_sec < since) return 0;
  // Tests make such a file executable, which changes the one time and not the other; what they copied there has two new ones.
  return file->st_ctim.tv_sec < until || (is_below(path, workdir) && (file->st_mtim.tv_sec < until || file->st_mtim.tv_sec > time(NULL)));
}

static int is_built(const char *path, const struct stat *file) {
  return is_below(path, workdir) && !is_of_system(path) && file->st_ctim.tv_sec >= until;
}

static const char *name_in(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// `python3.11` is python.
static int is_one_of(const char *name, const char *const *names) {
  for (; *names; names++) {
    size_t length = strlen(*names);
    if (!strncmp(name, *names, length) && strspn(name + length, "0123456789.") == strlen(name + length)) return 1;
  }
  return 0;
}
static const char *const PYTHONS[] = {"python", "pypy", NULL};
static const char *const SHELLS[] = {"bash", "sh", "dash", "ash", "zsh", "ksh", "busybox", "fish", NULL};
static const char *const OTHERS[] = {"node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua", "luajit", "java", "Rscript", "R", "julia",
                                     "tclsh", "guile", "racket", "elixir", "escript", NULL};
// Runners start what they are told to, from wherever they are.
static const char *const RUNNERS[] = {"uv", "uvx", "go", "cargo", "make", "gmake", "pytest", NULL};
static const char *const MAKES[] = {"make", "gmake", NULL};

static int link_of(int pid, const char *what, char *text) {
  char path[48];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
  ssize_t length = readlink(path, text, PATH_ROOM - 1);
  text[length > 0 ? length : 0] = 0;
  return length > 0;
}

// A regular file as a process with this working directory names it: where it really is, and what it is.
static int file_at(const char *folder, const char *name, char *real, struct stat *file) {
  char path[PATH_ROOM], own[48];
  int length = name[0] == '/' ? snprintf(path, sizeof path, "%s", name) : snprintf(path, sizeof path, "%s/%s", folder, name);
  if (length >= (int)sizeof path) return 0;
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
  int fd = syscall(SYS_openat2, root, path, &how, sizeof how);
  if (fd < 0) return 0;
  snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
  ssize_t read = readlink(own, real, PATH_ROOM - 1);
  real[read > 0 ? read : 0] = 0;
  int found = read > 0 && fstat(fd, file) == 0 && S_ISREG(file->st_mode);
  close(fd);
  return found;
}

static int given_at(const char *folder, const char *name) {
  char real[PATH_ROOM];
  struct stat file;
  return file_at(folder, name, real, &file) && is_given(real, &file);
}

static int given_module(const char *folder, const char *module) {
  static const char *const forms[] = {"%s.py", "%s/__main__.py", "%s/__init__.py"};
  char name[PATH_ROOM], path[PATH_ROOM];
  snprintf(name, sizeof name, "%.900s", module);
  for (char *at = name; *at; at++)
    if (*at == '.') *at = '/';
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, forms[i], name);
    if (given_at(folder, path)) return 1;
  }
  return 0;
}

// The file that an interpreter was given to run; 0 where that is none, or is no file. `module`: what it was given in the place of one.
static int script_of(const char *name, char *args, ssize_t length, const char *folder, char *real, struct stat *file, const char **module) {
  int python = is_one_of(name, PYTHONS), shell = is_one_of(name, SHELLS), php = !strncmp(name, "php", 3);
  for (char *arg = args + strlen(args) + 1; arg < args + length; arg += strlen(arg) + 1) {
    if (arg[0] != '-') {
      if (file_at(folder, arg, real, file)) return 1;
      continue;
    }
    int single = arg[1] != '-';
    if (python && single && arg[1] == 'm') {
      *module = arg[2] ? arg + 2 : arg + strlen(arg) + 1 < args + length ? arg + strlen(arg) + 1 : "";
      return 0;
    }
    if (python ? single && (arg[1] == 'c' || !arg[1]) : shell ? single && strchr(arg, 'c') != NULL
        : php ? single && arg[1] == 'r' : !strncmp(arg, "--eval", 6) || !strncmp(arg, "--print", 7) || !strcmp(arg, "-p") || (single && strchr(arg, 'e') && strlen(arg) <= 4))
      return 0;
  }
  return 0;
}

// Whether a process runs a program or a script of the agent's, or a file of recipes. `by_tests`: its script is the tests' own.
static int is_program(int pid, int *by_tests) {
  char exe[PATH_ROOM], folder[PATH_ROOM], real[PATH_ROOM], path[48];
  static char args[ARGS_ROOM];
  struct stat file;
  if (by_tests) *by_tests = 0;
  if (!link_of(pid, "exe", exe)) return 0;
  const char *name = name_in(exe);
  if (by_tests && (is_one_of(name, PYTHONS) || is_one_of(name, OTHERS))) *by_tests = 2;
  int interprets = is_one_of(name, PYTHONS) || is_one_of(name, SHELLS) || is_one_of(name, OTHERS);
  snprintf(path, sizeof path, "/proc/%d/exe", pid);
  if (!interprets && !is_one_of(name, RUNNERS)) return stat(path, &file) == 0 && (is_given(exe, &file) || is_built(exe, &file));
  if (!link_of(pid, "cwd", folder)) return 0;
  if (is_one_of(name, MAKES)) return given_at(folder, "Makefile") || given_at(folder, "makefile") || given_at(folder, "GNUmakefile");
  if (!interprets) return 0;
  ssize_t length = proc_text(pid, "cmdline", args, sizeof args);
  if (length == 0) return 0;
  const char *module = NULL;
  if (script_of(name, args, length, folder, real, &file, &module)) {
    const char *script = name_in(real);
    if (by_tests && !strcmp(script, "test.sh"))
      for (int i = 0; i < asked_count; i++)
        if (is_below(real, asked_for[i])) *by_tests = 1;
    if (!strcmp(script, "npm-cli.js") || !strcmp(script, "npx-cli.js") || !strcmp(script, "yarn.js") || !strcmp(script, "pnpm.cjs"))
      return given_at(folder, "package.json");
    return is_given(real, &file);
  }
  return module && given_module(folder, module);
}

static void ran(void) {
  static int said = 0;
  if (!said++) say("wrote program ? -\n");
}

// Nothing inside can be the child of nobody but what the engine started: after the beginning that is the tests. A child of process 1 has lost
// its parent, and is known only where it was seen before. A process that a program of the agent's started is that program.
static int who_is(int pid, int depth) {
  int parent;
  unsigned long long start;
  int at = pid & (TABLE - 1);
  if (pid <= 1 || depth > 64) return UNKNOWN;
  // Gone by now, and looked at while it was held.
  if (!stat_of(pid, NULL, 0, &parent, &start)) return seen[at].pid == pid ? seen[at].who : UNKNOWN;
  int before = seen[at].pid == pid && seen[at].start == start ? seen[at].who : UNKNOWN;
  if (before == LEFT || before == PROGRAM) return before;
  int who = start <= began ? LEFT : parent == 0 ? TESTS : who_is(parent, depth + 1);
  if (who == UNKNOWN) who = before;
  if (who != LEFT && is_program(pid, NULL)) who = PROGRAM;
  if (who == PROGRAM) ran();
  if (seen[at].pid != pid || seen[at].start != start) seen[at].script = 0;
  seen[at].pid = pid;
  seen[at].start = start;
  seen[at].who = who;
  return who;
}

static void clean(char *text) {
  for (; *text; text++)
    if (*text <= ' ' || *text > '~') *text = '?';
}

static int is_code(const char *name) {
  static const char *const endings[] = {".py", ".sh", ".js", ".cjs", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua"};
  size_t length = strlen(name);
  for (unsigned i = 0; i < sizeof endings / sizeof *endings; i++)
    if (length > strlen(endings[i]) && !strcmp(name + length - strlen(endings[i]), endings[i])) return 1;
  return 0;
}

static unsigned hash_of(const char *text) {
  unsigned hash = 5381;
  while (*text) hash = hash * 33 + (unsigned char)*text++;
  return hash;
}

static void tell(int pid, const char *path, const char *name, unsigned long long mask) {
  static unsigned said[MAX_TOLD];
  // 0 is whoever is not in here: the engine.
  if (pid == 0 || pid == getpid()) return;
  int reward = !strncmp(name, "reward.", 7), script = !strcmp(name, "test.sh"), by_tests = 0, at = pid & (TABLE - 1);
  int who = who_is(pid, 0);
  if (who == TESTS) {
    int was = seen[at].pid == pid ? seen[at].script : 0;
    if (!(mask & (FAN_CREATE | FAN_MOVED_TO | FAN_MODIFY)) || (!reward && !script && !(was == 2 && is_code(name)))) return;
    by_tests = was == 1;
  }
  // Many lines must not hide the one that counts.
  if (told >= MAX_TOLD && !reward && !script) return;
  char program[64] = "?", line[PATH_ROOM * 2], file[PATH_ROOM];
  int parent;
  unsigned long long start;
  stat_of(pid, program, sizeof program, &parent, &start);
  snprintf(file, sizeof file, "%s/%s", path, name);
  clean(program);
  clean(file);
  snprintf(line, sizeof line, "wrote %s %s %.300s\n", by_tests ? "script" : WHO[who], program[0] ? program : "?", file);
  // The order of the last ones counts where a reward is written.
  static unsigned last;
  unsigned hash = hash_of(line), *slot = &said[hash % MAX_TOLD];
  if (reward || script ? last == hash : *slot == hash) return;
  if (reward || script) last = hash;
  *slot = hash;
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

// Marks a folder above one that is asked for, whose names may be exchanged; else also the files below it.
static void mark_one(const char *path, int needed, int above) {
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
    unsigned long long names = FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_ONDIR;
    if (!above && fanotify_mark(asked, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_EVENT_ON_CHILD, fd, NULL) < 0) fail("hold what opens files");
    if (fanotify_mark(told_fd, FAN_MARK_ADD, names | (above ? 0 : FAN_MODIFY | FAN_ATTRIB | FAN_EVENT_ON_CHILD), fd, NULL) < 0)
      fail("see what is written");
    folder[folders].handle = handle;
    folder[folders].above = above;
    snprintf(folder[folders].path, PATH_ROOM, "%s", path);
    folders++;
  } else free(handle);
  if (above) { close(fd); return; }
  DIR *list = fdopendir(fd);
  if (!list) { close(fd); return; }
  struct dirent *entry;
  while ((entry = readdir(list))) {
    if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    char below[PATH_ROOM];
    if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below) mark_one(below, 0, 0);
  }
  closedir(list);
}

static void mark_above(const char *path) {
  char above[PATH_ROOM];
  snprintf(above, sizeof above, "%s", path);
  for (char *slash; (slash = strrchr(above, '/')) && slash != above;) {
    *slash = 0;
    mark_one(above, 0, 1);
  }
  mark_one("/", 0, 1);
}

static void mark(const char *path, int needed) {
  mark_one(path, needed, 0);
  mark_above(path);
}

static int leads_to(const char *path) {
  for (int i = 0; i < asked_count; i++)
    if (!strcmp(asked_for[i], path) || is_below(asked_for[i], path)) return 1;
  return 0;
}

// A folder that was made, or came from elsewhere: below what is asked for, or again in the place of it.
static void mark_new(const char *path) {
  for (int i = 0; i < asked_count; i++) {
    if (!strcmp(asked_for[i], path) || is_below(path, asked_for[i])) mark_one(path, 0, 0);
    if (is_below(asked_for[i], path)) mark_one(asked_for[i], 0, 0);
  }
}

static int opens_given(int fd) {
  char own[48], path[PATH_ROOM];
  struct stat file;
  snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(own, path, sizeof path - 1);
  if (length <= 0 || fstat(fd, &file) < 0) return 0;
  path[length] = 0;
  const char *name = name_in(path);
  if (is_one_of(name, PYTHONS) || is_one_of(name, SHELLS) || is_one_of(name, OTHERS) || is_one_of(name, RUNNERS)) return 0;
  return is_given(path, &file);
}

// The script of an interpreter shows only after its start, and the interpreter may be gone before its writes are told.
enum { FRESH = 64, LOOKS = 20 };
static struct { int pid, left; } fresh[FRESH];
static int fresh_count = 0;

static void look_at_fresh(void) {
  int kept = 0;
  for (int i = 0; i < fresh_count; i++)
    if (who_is(fresh[i].pid, 0) == TESTS && --fresh[i].left > 0) fresh[kept++] = fresh[i];
  fresh_count = kept;
}

static void answer_asked(void) {
  char buffer[8192] __attribute__((aligned(8)));
  ssize_t length = read(asked, buffer, sizeof buffer);
  if (length <= 0) return;
  for (struct fanotify_event_metadata *event = (void *)buffer; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
    if (event->fd < 0) continue;
    if (event->pid > 0) {
      int who = who_is(event->pid, 0);
      if (who == TESTS && !(event->mask & FAN_OPEN_EXEC_PERM)) is_program(event->pid, &seen[event->pid & (TABLE - 1)].script);
      if (who == TESTS && (event->mask & FAN_OPEN_EXEC_PERM) && fresh_count < FRESH) {
        fresh[fresh_count].pid = event->pid;
        fresh[fresh_count++].left = LOOKS;
      }
      // A shell runs a script without an interpreter in its first line by itself: nothing but this opening shows it.
      if (who == TESTS && (event->mask & FAN_OPEN_EXEC_PERM) && opens_given(event->fd)) {
        seen[event->pid & (TABLE - 1)].who = PROGRAM;
        ran();
      }
    }
    struct fanotify_response response = {.fd = event->fd, .response = FAN_ALLOW};
    if (write(asked, &response, sizeof response) < 0) say("lost\n");
    close(event->fd);
  }
}

// A link to a reward that was there may be made anywhere, and what is written by that name is told of no folder that is watched.
static void look_at_rewards(int is_end) {
  static struct timespec known[8][2];
  static const char *const names[] = {"reward.txt", "reward.json"};
  for (int i = 0; i < asked_count && i < 8; i++)
    for (int k = 0; k < 2; k++) {
      char real[PATH_ROOM], line[PATH_ROOM + 32];
      struct stat file;
      if (!file_at(asked_for[i], names[k], real, &file)) continue;
      if (is_end && (file.st_nlink > 1 || file.st_ctim.tv_sec != known[i][k].tv_sec || file.st_ctim.tv_nsec != known[i][k].tv_nsec)) {
        snprintf(line, sizeof line, "wrote unknown ? %.300s/%s\n", asked_for[i], names[k]);
        say(line);
      }
      known[i][k] = file.st_ctim;
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
        char below[PATH_ROOM];
        int fits = snprintf(below, sizeof below, "%s/%s", !strcmp(folder[i].path, "/") ? "" : folder[i].path, name) < (int)sizeof below;
        // Above the folders that are asked for, only they and those above them are looked at.
        if (folder[i].above && !(fits && leads_to(below))) break;
        if (names) tell(event->pid, folder[i].path, name, event->mask);
        if (fits && (event->mask & FAN_ONDIR) && (event->mask & (FAN_CREATE | FAN_MOVED_TO))) {
          for (int k = 0; k < asked_count; k++)
            if (is_below(asked_for[k], below)) mark_above(asked_for[k]);
          mark_new(below);
        }
        break;
      }
    }
  look_at_rewards(0);
}

static unsigned long long ticks_now(void) {
  double seconds = 0;
  FILE *file = fopen("/proc/uptime", "r");
  if (!file || fscanf(file, "%lf", &seconds) != 1) fail("read the time");
  fclose(file);
  return (unsigned long long)(seconds * sysconf(_SC_CLK_TCK));
}

/** blocks.c: one file has both programs, because each alone would bring the C library once more. */
int blocks(void);

int main(int count, char **argument) {
  if (strcmp(argument[0], "/blocks") == 0) return blocks();
  signal(SIGPIPE, SIG_IGN);
  if (count < 4) fail("begin without folders");
  since = atoll(argument[1]);
  workdir = argument[2];
  asked_for = argument + 3;
  asked_count = count - 3;
  root = open("/proc/1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) fail("reach the other container");
  asked = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
  told_fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
  if (asked < 0 || told_fd < 0) fail("watch");
  for (int i = 0; i < asked_count; i++) mark(asked_for[i], 1);
  if (fanotify_mark(asked, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_EXEC_PERM, AT_FDCWD, "/proc/1/root") < 0) fail("hold what starts programs");
  // A process that starts in the same tick, or in the next one, counts as having been there: a later one came after the word "ready".
  began = ticks_now() + 1;
  until = time(NULL);
  struct pollfd wait[3] = {{.fd = 0, .events = POLLIN}, {.fd = asked, .events = POLLIN}, {.fd = told_fd, .events = POLLIN}};
  int ready = 0;
  for (;;) {
    int some = poll(wait, 3, fresh_count ? 1 : ready ? 1000 : 10);
    if (some < 0 && errno != EINTR) fail("wait");
    if (wait[1].revents) answer_asked();
    if (wait[2].revents) read_told(1);
    if (!ready && ticks_now() > began) { ready = 1; say("ready\n"); }
    if (wait[0].revents) {
      char in[64];
      ssize_t length = read(0, in, sizeof in);
      if (length <= 0) break;
      for (int i = 0; i < asked_count; i++) mark(asked_for[i], 0);
      read_told(1);
      say("marked\n");
    }
    int looked = fresh_count;
    look_at_fresh();
    if (some == 0 && ready && !looked) say(".\n");
  }
  read_told(1);
  look_at_rewards(1);
  say("end\n");
  return 0;
}
