// Tells how much of the disk some files of a container take, and how much their holes would take. The program runs in a container of its own, in the
// process namespace of the other one and with nothing else of it: nobody in there can change what it says.
//
//   blocks                 (a part of the program watch, under this name) paths on its standard input, absolute, each with a zero byte behind it;
//                          an empty one is the last
//
// One line on its standard output: "BYTES HOLES ATTRIBUTES", of what is there: the first two in bytes, the last is how many have attributes that no
// layer of an image keeps (user.*, access lists). A file of several names counts once. The program follows no link, and ends with 2 and a
// reason where it cannot look. CAP_SYS_PTRACE lets the files be reached through /proc, CAP_DAC_READ_SEARCH through folders of others.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct { dev_t device; ino_t inode; } *met;
static size_t met_room, met_count;

static size_t place_of(dev_t device, ino_t inode) {
  size_t at = (size_t)(inode * 0x9E3779B97F4A7C15ull ^ device) & (met_room - 1);
  while (met[at].inode && (met[at].inode != inode || met[at].device != device)) at = (at + 1) & (met_room - 1);
  return at;
}

// 1 where it was met before.
static int meet(dev_t device, ino_t inode) {
  if (2 * (met_count + 1) > met_room) {
    size_t old_room = met_room;
    void *before = met;
    met_room = old_room ? 2 * old_room : 1024;
    met = calloc(met_room, sizeof *met);
    if (!met) exit(2);
    for (size_t i = 0; i < old_room; i++) {
      const struct { dev_t device; ino_t inode; } *one = (const void *)((const char *)before + i * sizeof *met);
      if (!one->inode) continue;
      size_t at = place_of(one->device, one->inode);
      met[at].device = one->device;
      met[at].inode = one->inode;
    }
    free(before);
  }
  size_t at = place_of(device, inode);
  if (met[at].inode) return 1;
  met[at].device = device;
  met[at].inode = inode;
  met_count++;
  return 0;
}

// Layers keep security.capability alone, and engines and kernels write others of security.* themselves.
static int has_attributes(int file) {
  static char names[65536];
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = listxattr(link, names, sizeof names);
  for (const char *name = names; name < names + length; name += strlen(name) + 1)
    if (!strncmp(name, "system.posix_acl", 16) || (!strncmp(name, "user.", 5) && strncmp(name, "user.overlay.", 13))) return 1;
  return 0;
}

int blocks(void) {
  int root = open("/proc/1/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    printf("cannot reach the files: %s\n", strerror(errno));
    return 2;
  }
  unsigned long long bytes = 0, holes = 0, attributes = 0;
  char *path = NULL;
  size_t room = 0;
  // No link leads anywhere: what somebody puts in the place of a folder is not the file that was meant.
  struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_IN_ROOT};
  for (;;) {
    ssize_t length = getdelim(&path, &room, 0, stdin);
    if (length <= 0 || path[length - 1] != 0) return 2;
    if (length == 1) break;
    int file = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (file < 0) continue;
    struct stat stat;
    int known = fstat(file, &stat) == 0;
    int attributed = known && (S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode)) && has_attributes(file);
    close(file);
    if (!known || (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode))) continue;
    if (stat.st_nlink > 1 && !S_ISDIR(stat.st_mode) && meet(stat.st_dev, stat.st_ino)) continue;
    unsigned long long taken = 512ull * (unsigned long long)stat.st_blocks;
    bytes += taken;
    attributes += (unsigned long long)attributed;
    if (S_ISREG(stat.st_mode) && (unsigned long long)stat.st_size > taken) holes += (unsigned long long)stat.st_size - taken;
  }
  printf("%llu %llu %llu\n", bytes, holes, attributes);
  return 0;
}
