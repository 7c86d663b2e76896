/*
 * file_map.h - reading what is cached from a mapping of the file. Defined in file_map.c.
 */
#ifndef GORO_FILE_MAP_H
#define GORO_FILE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fd;
struct file_map;

/* What the reads of late say; f is a file that the caller has entered. Expected: the page
 * cache has what will be asked for. In user code. */
bool file_expected(const struct fd *f);
void file_found(struct fd *f, bool cached);

/* True: buf has the n bytes at off, all of which the file has. False: find out by a system
 * call. In user code. */
bool file_map_read(int fd, void *buf, size_t n, off_t off);

/* f is being closed, or forgotten; under its lock. What there was is for file_map_end, in
 * user code, before the number is free. */
struct file_map *file_map_take(struct fd *f);
void file_map_end(struct file_map *map);	/* or NULL */

extern int file_maps;	/* at present; atomic */

#endif
