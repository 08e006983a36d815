# make          build everything
# make test     build, then every test; the last line is the total
# make demo     the whole pipe on the fixtures
# The rest: check-slow check-sanitize bench golden fixture-model clean install uninstall (PREFIX, DESTDIR)

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

PREFIX ?= /usr/local
JOBS ?= 2
commands := worktree mine judge rollout reward train eval
bin := node_modules/.bin

# What building needs. One line says what is missing and how to get it.
ifneq ($(filter-out clean uninstall,$(or $(MAKECMDGOALS),build)),)
missing := $(shell for tool in node npm python3 g++ git; do command -v $$tool > /dev/null || echo $$tool; done)
ifneq ($(missing),)
$(error missing: $(missing). Install them: node and npm from https://nodejs.org (20.19 or newer), the rest with your package manager (apt-get install python3 make g++ git))
endif
ifneq ($(shell node -p 'const [a, b] = process.versions.node.split(".").map(Number); a > 20 || (a === 20 && b >= 19)'),true)
$(error node $(shell node --version) is too old: install 20.19 or newer from https://nodejs.org)
endif
# Headers that came with node save a download of them.
export npm_config_nodedir ?= $(shell node -p 'const p = require("path").resolve(process.execPath, "../.."); require("fs").existsSync(p + "/include/node/node_api.h") ? p : ""')
ifeq ($(npm_config_nodedir),)
unexport npm_config_nodedir
endif
endif

.PHONY: build modules addon programs typescript tests test check-slow check-sanitize bench golden lint clean install uninstall

# What does not need one another is built side by side: one compiler works on SQLite for a minute.
MAKEFLAGS += --jobs=$(JOBS)

build: modules addon typescript

# Packages, exactly as locked, without their install scripts; SQLite is the one that must be compiled, from its own sources
# (it keeps a cache here: at -O1 the compiler is done in half the time).
installed := node_modules/.installed
$(installed): package-lock.json
	npm ci --ignore-scripts
	touch $@

# Stamps lie beside what they vouch for, so that removing that removes them.
gyp := env -u MAKEFLAGS $(CURDIR)/$(bin)/node-gyp --release --loglevel=warn
modules: node_modules/better-sqlite3/build/Release/.built
node_modules/better-sqlite3/build/Release/.built: $(installed)
	cd node_modules/better-sqlite3 && CFLAGS=-O1 CXXFLAGS='-O1 -w' $(gyp) rebuild
	touch $@

build/Makefile: binding.gyp $(installed)
	$(gyp) configure
	touch $@

native := $(shell find native -name '*.cpp' -o -name '*.h')
addon: build/Release/.built
build/Release/.built: build/Makefile $(native)
	$(gyp) build --jobs=$(JOBS) cg cg-leash
	touch $@

# Tests and benchmarks of the engine, after the addon: they share its objects.
programs: build/Release/.programs
build/Release/.programs: build/Release/.built
	$(gyp) build --jobs=$(JOBS) native-test native-bench failing-disk
	touch $@

typescript: dist/.built
dist/.built: tsconfig.json package.json $(installed) $(shell find src -name '*.ts')
	$(bin)/tsc -p .
	node dist/cli/man.js dist/man
	touch $@

tests: build programs build/js/.built
build/js/.built: dist/.built build/js/fixtures/.built test/tsconfig.json $(shell find test -name '*.ts')
	$(bin)/tsc -p test
	touch $@

test: tests
	node build/js/test/run.js --jobs $(JOBS)

# The reader of safetensors with sanitizers, for its fuzzer.
fuzz_sources := $(addprefix native/,core/safetensors.cpp core/safetensors_values.cpp core/json.cpp core/files.cpp test/fuzz_safetensors.cpp)
build/fuzz/fuzz-safetensors: $(fuzz_sources) $(wildcard native/core/*.h)
	mkdir -p $(@D)
	g++ -std=c++20 -O1 -g -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all -Inative -o $@ $(fuzz_sources)

# The engine and its op table with sanitizers: memory and undefined behaviour, then data races.
sanitized := $(wildcard native/core/*.cpp native/reference/*.cpp native/reference_remote/*.cpp native/cpu/*.cpp) \
  $(filter-out native/test/bench.cpp native/test/fuzz_% native/test/failing_disk.cpp,$(wildcard native/test/*.cpp))
sanitize_address := -fsanitize=address,undefined -fno-sanitize-recover=all
sanitize_thread := -fsanitize=thread
define sanitize
build/sanitize/$1/%.o: native/%.cpp $$(wildcard native/*/*.h)
	@mkdir -p $$(@D)
	g++ -std=c++20 -O1 -g -Wall -Wextra -ffp-contract=off $$(sanitize_$1) -Inative -c -o $$@ $$<
build/sanitize/$1/native-test: $$(sanitized:native/%.cpp=build/sanitize/$1/%.o)
	g++ $$(sanitize_$1) -pthread -o $$@ $$^
endef
$(foreach kind,address thread,$(eval $(call sanitize,$(kind))))

check-sanitize: build/sanitize/address/native-test build/sanitize/thread/native-test
	build/sanitize/address/native-test | grep -v '^ok'
	build/sanitize/thread/native-test | grep -v '^ok'

# Slow: needs minutes, or packages from elsewhere.
check-slow: tests build/fuzz/fuzz-safetensors
	node build/js/test/run.js --jobs 1 --slow

# One JSON line a figure; make bench ONLY=NAME runs one. Peers (PyTorch, TRL, llama.cpp) are installed into .bench on first use; nothing else needs them.
bench: tests fixtures
	node build/js/test/bench/run.js $(ONLY)

golden: tests
	node build/js/test/golden/run.js fixtures/golden/engine
	node build/js/test/golden/run.js fixtures/golden/retrieval

lint: $(installed)
	$(bin)/biome check

# ---- demo ----
# The main job as you could type it: worktrees, scripted rollouts, SFT, on-policy GRPO, and a table on repositories that no model has seen.
#   make demo EVAL=FILE SOURCE=TEMPLATE    measures on instances of your own (SOURCE as in cg-worktree --source)
#   make demo SEED=N                       draws differently
#   make demo REFRESH=1                    does everything again; otherwise what is done already is taken from the cache
SEED ?= 0
STEPS ?= 24
EVAL ?= fixtures/instances/heldout.ndjson
fixture_repos := file://$(CURDIR)/build/fixtures/repos/{repo}
SOURCE ?= $(fixture_repos)
d := build/demo
# The fixture model knows 4,096 positions: short observations leave room for four turns. Its teacher makes one call a turn, in four orders: what to do after a
# search that found nothing is seldom seen otherwise. SFT leaves a policy that is sharp at 1 (it is fitted at 1.8): at 1.6 it still tries different searches,
# and half of the groups have something to learn from instead of one in eight.
caps := --max-matches 8 --max-chars 600
tiny := --model fixtures/model --recipe codegrep-tiny --seed $(SEED)

.PHONY: demo fixtures
fixtures: build/fixtures/.built
build/fixtures/.built: build/js/fixtures/.built $(shell find fixtures/repos fixtures/instances -type f)
	node build/js/fixtures/build.js
	touch $@

build/js/fixtures/.built: fixtures/tsconfig.json $(wildcard fixtures/*.ts fixtures/generate/*.ts) | dist/.built
	$(bin)/tsc -p fixtures
	touch $@

demo: export PATH := $(CURDIR)/bin:$(PATH)
demo: export CG_CACHE := $(CURDIR)/$d/cache.sqlite
demo: export CG_STORE := $(CURDIR)/$d/store
demo: build fixtures
	$(if $(REFRESH),rm -rf $d)
	mkdir -p $d
	cg-worktree --source '$(fixture_repos)' fixtures/instances/train.ndjson | cg-mine gold -o $d/train.ndjson
	cg-worktree --source '$(fixture_repos)' fixtures/instances/dev.ndjson | cg-mine gold -o $d/dev.ndjson
	cg-worktree --source '$(SOURCE)' $(EVAL) | cg-mine gold -o $d/heldout.ndjson
	cg-rollout --policy lexical -n 4 --max-calls 1 $(caps) $d/train.ndjson | cg-reward --scheme codegrep-v3 -o $d/teacher.ndjson
	cg-train sft $(tiny) --min-reward 0.5 --publish $d/run-sft --resume --out $d/sft $d/teacher.ndjson -o $d/steps-sft.ndjson
	cg-rollout --policy native:fixtures/model --on-policy $d/run-grpo $(caps) --temperature 1.6 --seed $(SEED) $d/train.ndjson \
	  | cg-reward --scheme codegrep-v3 \
	  | cg-train grpo $(tiny) --init-adapter $d/sft --steps $(STEPS) --eval-every 8 --eval-samples 4 --eval-file $d/dev.ndjson --choose best \
	      --publish $d/run-grpo --resume --out $d/grpo -o $d/steps-grpo.ndjson
	cg-rollout --policy bm25 $d/heldout.ndjson -o $d/rollouts-bm25.ndjson
	cg-rollout --policy lexical $(caps) $d/heldout.ndjson -o $d/rollouts-lexical.ndjson
	cg-rollout --policy native:fixtures/model $(caps) -n 8 --seed $(SEED) $d/heldout.ndjson -o $d/rollouts-base.ndjson
	cg-rollout --policy native:fixtures/model@$d/sft $(caps) -n 8 --seed $(SEED) $d/heldout.ndjson -o $d/rollouts-sft.ndjson
	cg-rollout --policy native:fixtures/model@$d/grpo $(caps) -n 8 --seed $(SEED) $d/heldout.ndjson -o $d/rollouts-grpo.ndjson
	table=(BM25=$d/rollouts-bm25.ndjson lexical=$d/rollouts-lexical.ndjson base=$d/rollouts-base.ndjson SFT=$d/rollouts-sft.ndjson GRPO=$d/rollouts-grpo.ndjson); \
	  cg-eval table --no-run --title 'held-out repositories' "$${table[@]}" -o $d/table.ndjson; \
	  cg-eval table -q --title 'held-out repositories' --format text "$${table[@]}"
	@printf '%s\n' '' 'adapter: $d/grpo (PEFT)      metrics: $d/steps-grpo.ndjson      rollouts: $d/rollouts-*.ndjson' \
	  'next:    bin/cg-eval table --by issue_kind --format text GRPO=$d/rollouts-grpo.ndjson' \
	  '         bin/cg-eval compare $d/rollouts-sft.ndjson $d/rollouts-grpo.ndjson' \
	  '         bin/cg-rollout --repo . --issue ISSUE.txt      (asks the scripted agent about a repository of yours)'
# ---- end of demo ----

# ---- the small model of the fixtures ----
# Where fixtures/model comes from: drawn repositories and issues, sessions of the scripted agent that is wrong now and then, and supervised training of all
# weights of fixtures/start. Each stage is a file below build/fixture-model, so that a rerun begins with the first one that is missing; removing a file does it again.
#   make fixture-model                     trains; the checkpoint is build/fixture-model/model, byte for byte fixtures/model when nothing has changed
#   make fixture-model-measure             what that model, the one in fixtures/model and their teacher do on drawn and on dev repositories that none has seen
f := build/fixture-model
NOISE ?= 0.25
SESSIONS ?= 1
# Fitted above 1, the model is sharper than its teacher's text: at 1 it copies what it means to copy.
FULL ?= --epochs 2 --lr 2e-3 --schedule cosine --warmup 0.02 --batch-size 16 --temperature 1.33
drawn := node build/js/fixtures/generate/generate.js
measure := node build/js/fixtures/generate/measure.js

.PHONY: fixture-model fixture-model-measure
.SECONDARY: $f/train.ndjson $f/eval.ndjson
fixture-model fixture-model-measure $f/%: export PATH := $(CURDIR)/bin:$(PATH)
fixture-model fixture-model-measure $f/%: export CG_CACHE := $(CURDIR)/$f/cache.sqlite
fixture-model fixture-model-measure $f/%: export CG_STORE := $(CURDIR)/$f/store

fixture-model: $f/model/model.safetensors
$f/train/instances.ndjson: build/js/fixtures/.built
	$(drawn) $f/train --seed train --repos 300 --issues 40
$f/eval/instances.ndjson: build/js/fixtures/.built
	$(drawn) $f/eval --seed evaluation --repos 16 --issues 4
$f/train.ndjson $f/eval.ndjson: $f/%.ndjson: $f/%/instances.ndjson | build
	cg-worktree --source 'file://$(CURDIR)/$f/$*/repos/{repo}' $< | cg-mine gold -o $@
$f/dev.ndjson: build/fixtures/.built fixtures/instances/dev.ndjson | build
	mkdir -p $f
	cg-worktree --source '$(fixture_repos)' fixtures/instances/dev.ndjson | cg-mine gold -o $@
$f/rollouts.ndjson: $f/train.ndjson
	cg-rollout --policy lexical --noise $(NOISE) -n $(SESSIONS) $(caps) --seed $(SEED) $< -o $@
$f/sessions.ndjson: $f/rollouts.ndjson
	cg-reward --scheme codegrep-v3 $< -o $@
# Good and bad sessions alike: what is left out here, reinforcement learning could not find again.
$f/model/model.safetensors: $f/sessions.ndjson
	cg-train sft --full --model fixtures/start $(FULL) --seed $(SEED) --out $f/model $< -o $f/steps.ndjson

fixture-model-measure: $f/eval.ndjson $f/dev.ndjson
	for set in eval dev; do \
	  cg-rollout --policy lexical --noise $(NOISE) -n 8 $(caps) --seed $(SEED) $f/$$set.ndjson -o $f/$$set-teacher.ndjson; \
	  cg-rollout --policy native:fixtures/model -n 8 $(caps) --seed $(SEED) $f/$$set.ndjson -o $f/$$set-fixture.ndjson; \
	  ! test -e $f/model/model.safetensors || cg-rollout --policy native:$f/model -n 8 $(caps) --seed $(SEED) $f/$$set.ndjson -o $f/$$set-model.ndjson; \
	done
	$(measure) $$(ls $f/{eval,dev}-{teacher,fixture,model}.ndjson 2> /dev/null)
# ---- end of the small model ----

clean:
	rm -rf build dist

# Production packages only, without the sources that SQLite was compiled from.
lib := $(DESTDIR)$(PREFIX)/lib/cg
man := $(DESTDIR)$(PREFIX)/share/man
install: build
	rm -rf $(lib)
	mkdir -p $(lib)/build/Release $(DESTDIR)$(PREFIX)/bin $(man)/man1 $(man)/man5 $(man)/man7
	cp -R bin dist package.json LICENSE $(lib)
	cp build/Release/cg.node $(lib)/build/Release
	! test -e build/Release/cg-leash || cp build/Release/cg-leash $(lib)/build/Release
	npm ls --all --omit=dev --parseable 2> /dev/null | sed -n "s|^$$PWD/||p" | sort -u \
	  | tar -cf - --exclude=better-sqlite3/deps --exclude=better-sqlite3/src --exclude='better-sqlite3/build/Release/obj*' --exclude=.deps -T - | tar -xf - -C $(lib)
	for command in $(commands); do ln -sf ../lib/cg/bin/cg-$$command $(DESTDIR)$(PREFIX)/bin/cg-$$command; done
	install -m 644 dist/man/*.1 $(man)/man1
	install -m 644 dist/man/*.5 $(man)/man5
	install -m 644 dist/man/*.7 $(man)/man7

uninstall:
	rm -rf $(lib)
	for command in $(commands); do rm -f $(DESTDIR)$(PREFIX)/bin/cg-$$command $(man)/man1/cg-$$command.1; done
	rm -f $(man)/man5/cg-record.5 $(man)/man7/cg-recovery.7
