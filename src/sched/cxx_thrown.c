/*
 * cxx_thrown.c - what a C++ exception is, for the report of one that nobody catches.
 *
 * A personality routine gets the exception as the unwinder knows it. The Itanium C++ ABI
 * says what lies before that (the type, as a std::type_info) and behind it (the object
 * that was thrown), and what a type_info of each kind looks like. So the type's name, and
 * the std::exception in the object, whose what() is called, can be had without a C++
 * compiler. What belongs to the C++ runtime is looked up weakly, as in cxx.c.
 *
 * Rejected: to catch it in C++ and throw it again. The library would need a C++ compiler,
 * and a debugger and std::terminate would see that the exception was caught.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/cxx.h"

/* An exception's class: the vendor, and in the last byte whether it stands for another
 * one, as std::rethrow_exception makes them. */
#define CLASS_GNU  UINT64_C(0x474e5543432b2b00)	/* "GNUCC++" */
#define CLASS_LLVM UINT64_C(0x434c4e47432b2b00)	/* "CLNGC++" */
#define CLASS_BITS UINT64_C(0xffffffffffffff00)
#define CLASS_DEPENDENT 0xff

/* Bytes of the unwinder's header, behind which the object lies, and of the C++ runtime's
 * before it, which the type begins. */
#define UNWIND_HEADER_BYTES 32
#define TYPE_BEFORE         80

struct type_info {
	void *const *vtable;
	const char *name;
};

struct si_type_info {		/* one public base at offset 0 */
	struct type_info type;
	const struct type_info *base;
};

struct vmi_type_info {		/* any bases */
	struct type_info type;
	unsigned int flags;
	unsigned int bases;
	struct {
		const struct type_info *type;
		long where;	/* the offset, and in the low byte flags */
	} base[];
};
#define BASE_VIRTUAL 1
#define BASE_PUBLIC  2
#define BASE_OFFSET  8		/* bits */

/* The vtables of these kinds of type_info. Entry 0 of an object's is the third word. */
extern void *const vtable_of_si[] __asm__("_ZTVN10__cxxabiv120__si_class_type_infoE")
	__attribute__((weak));
extern void *const vtable_of_vmi[] __asm__("_ZTVN10__cxxabiv121__vmi_class_type_infoE")
	__attribute__((weak));
#define VTABLE_ENTRIES 2
#define VTABLE_WHAT    2	/* after the two destructors */

extern char *__cxa_demangle(const char *name, char *buf, size_t *n, int *status)
	__attribute__((weak));

static bool is_kind(const struct type_info *type, void *const *vtable)
{
	return vtable && type->vtable == vtable + VTABLE_ENTRIES;
}

static bool is_type(const struct type_info *type, const char *name)
{
	return strcmp(type->name, name) == 0;
}

/* The std::exception within the object of that type. NULL: there is none. */
static char *exception_in(char *object, const struct type_info *type)
{
	if (is_type(type, "St9exception"))
		return object;
	if (is_kind(type, vtable_of_si))
		return exception_in(object, ((const struct si_type_info *)type)->base);
	if (is_kind(type, vtable_of_vmi)) {
		const struct vmi_type_info *several = (const struct vmi_type_info *)type;

		for (unsigned int i = 0; i < several->bases; i++) {
			long where = several->base[i].where, at = where >> BASE_OFFSET;
			char *found;

			if (!(where & BASE_PUBLIC))
				continue;
			if (where & BASE_VIRTUAL)	/* the vtable has the offset */
				memcpy(&at, *(char **)object + at, sizeof at);
			found = exception_in(object + at, several->base[i].type);
			if (found)
				return found;
		}
	}
	return NULL;
}

static void print_type(struct printer *pr, const struct type_info *type)
{
	const char *name = type->name[0] == '*' ? type->name + 1 : type->name;
	char *plain = __cxa_demangle ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;

	print_str(pr, plain ? plain : name);
	free(plain);
}

static void print_value(struct printer *pr, char *object, const struct type_info *type)
{
	char *e = exception_in(object, type);

	if (e) {
		const char *(*what)(const void *) =
			(const char *(*)(const void *))(*(void *const **)e)[VTABLE_WHAT];
		const char *text = what(e);

		print_str(pr, ": ");
		print_str(pr, text ? text : "(null)");
	} else if (is_type(type, "i")) {
		print_str(pr, ": ");
		print_int(pr, *(int *)object);
	} else if (is_type(type, "PKc") && *(char **)object) {
		print_str(pr, ": ");
		print_str(pr, *(char **)object);
	}
}

void cxx_print_thrown(struct printer *pr, uint64_t kind, void *exception)
{
	char *unwind = exception, *object = unwind + UNWIND_HEADER_BYTES;
	const struct type_info *type;

	if ((kind & CLASS_BITS) != CLASS_GNU && (kind & CLASS_BITS) != CLASS_LLVM) {
		print_str(pr, "of another language");
		return;
	}
	if ((kind & CLASS_DEPENDENT) && (kind & CLASS_BITS) == CLASS_GNU) {
		object = *(char **)(unwind - TYPE_BEFORE);
		unwind = object - UNWIND_HEADER_BYTES;
	} else if (kind & CLASS_DEPENDENT) {
		object = *(char **)(unwind - TYPE_BEFORE - sizeof(void *));
	}
	type = *(const struct type_info **)(unwind - TYPE_BEFORE);
	print_type(pr, type);
	print_value(pr, object, type);
}
