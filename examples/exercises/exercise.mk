# exercise.mk - what the Makefiles of the exercises share. `make` in a folder builds its programs.
#
# What goro needs pkg-config says: with goro in a folder of its own,
# PKG_CONFIG_PATH=FOLDER/lib/pkgconfig make. BIN is where the programs go.
BIN ?= .
CFLAGS ?= -O2 -g -Wall
CPPFLAGS += -I.. $(shell pkg-config --cflags goro)
LDLIBS += $(shell pkg-config --libs goro) -lm

# Each NAME.c is a program, but the PARTS are compiled into those of PROGRAMS.
PROGRAMS ?= $(patsubst %.c,%,$(filter-out $(PARTS),$(wildcard *.c)))

.PHONY: all clean
all: $(PROGRAMS:%=$(BIN)/%)

$(PROGRAMS:%=$(BIN)/%): $(BIN)/%: %.c $(PARTS) $(wildcard *.h) ../measure.h
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LDLIBS)

clean:
	$(RM) $(PROGRAMS:%=$(BIN)/%)
