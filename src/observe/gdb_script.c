/*
 * gdb_script.c - gdb's commands for goroutines, which each file with goro in it carries.
 *
 * gdb looks at the section .debug_gdb_scripts of what it loads, and runs the Python that
 * it finds there if the user lets it (auto-load safe-path). The script reads the
 * runtime's structures, so it belongs to one version of them: here it cannot be another
 * one's. The section takes no memory in the process, and strip removes it with the other
 * debug sections, without which the script could do nothing.
 */

/* 4: what follows is Python, after a line with its name. */
__asm__(".pushsection .debug_gdb_scripts, \"MS\", @progbits, 1\n"
        ".byte 4\n"
        ".ascii \"goro-gdb.py\\n\"\n"
        ".incbin \"" GORO_SOURCE_DIR "/observe/goro-gdb.py\"\n"
        ".byte 0\n"
        ".popsection\n");
