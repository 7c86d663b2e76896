/*
 * goro/base.h - what all of goro.h needs: its version, and the system's types.
 *
 * Part of goro.h, which says what holds for all of it. Include that one.
 */
#ifndef GORO_H_BASE
#define GORO_H_BASE

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The version of this header: #if GORO_VERSION_MAJOR > 1 || ... */
#define GORO_VERSION_MAJOR 0
#define GORO_VERSION_MINOR 1
#define GORO_VERSION_PATCH 0
#define GORO_VERSION       "0.1.0"

#define GORO_API __attribute__((visibility("default")))

#define GORO_NORETURN __attribute__((noreturn))

#ifdef __cplusplus
#include <initializer_list>
#include <type_traits>
#endif

/* The system's own types, without the headers that define them: those declare send,
 * recv, select and many more, and a program may have functions of its own with such
 * names. Who calls goro_recvmsg and the like includes <sys/socket.h>, <sys/uio.h>. */
typedef long ssize_t;
typedef long off_t;
typedef unsigned int socklen_t;
struct iovec;
struct msghdr;
struct sockaddr;

#endif
