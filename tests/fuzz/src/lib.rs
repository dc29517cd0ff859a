//! Feeds parsers with damaged input: seeded mutation, on the pinned stable toolchain.
//!
//! A target is a test beside its parser: a function over bytes that panics where something is wrong. `cargo test` gives
//! it its seeds, the inputs that were found to break it (`fuzz/NAME/` of its crate) and a few mutations of them.
//! `scripts/fuzz` gives it as many as a time allows, and builds it with counters on each branch, so that inputs that
//! reach something new are mutated further. An input that breaks it is made smaller and stored beside the others.
//!
//! Besides panics a target fails when an input makes it allocate out of proportion, or takes a second.

mod failure;
mod mutator;
mod random;
mod stored;
mod sys;

use std::panic::RefUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use failure::Failure;
use mutator::Mutator;
use random::Random;

/// What is mutated in `cargo test`, where it has to be short.
const MUTATIONS: usize = 100;
/// No input grows beyond that, unless a target says otherwise.
const LONGEST: usize = 16 << 10;
/// Bytes that any input may allocate, and bytes for each of its own.
const MEMORY: (usize, usize) = (1 << 20, 256);
/// Processor time of one input. A debug build on a slow machine takes a hundredth.
const SLOWEST: Duration = Duration::from_secs(1);

/// A parser, and what is known of its input.
pub struct Target {
    name: &'static str,
    directory: PathBuf,
    seeds: Vec<Vec<u8>>,
    mutator: Mutator,
    mutations: usize,
    memory: (usize, usize),
}

impl Target {
    /// Named `name`, in the package whose directory this is (`env!("CARGO_MANIFEST_DIR")`).
    #[must_use]
    pub fn new(package: &str, name: &'static str) -> Target {
        Target {
            name,
            directory: Path::new(package).join("fuzz").join(name),
            seeds: Vec::new(),
            mutator: Mutator::new(LONGEST),
            mutations: MUTATIONS,
            memory: MEMORY,
        }
    }

    /// Inputs that it reads.
    #[must_use]
    pub fn seeds<T: Into<Vec<u8>>>(mut self, seeds: impl IntoIterator<Item = T>) -> Target {
        self.seeds.extend(seeds.into_iter().map(Into::into));
        self
    }

    /// Words that mean something in its input.
    #[must_use]
    pub fn words<T: Into<Vec<u8>>>(mut self, words: impl IntoIterator<Item = T>) -> Target {
        self.mutator.words.extend(words.into_iter().map(Into::into));
        self
    }

    /// No input is made longer.
    #[must_use]
    pub fn longest(mut self, bytes: usize) -> Target {
        self.mutator.longest = bytes;
        self
    }

    /// Mutations in `cargo test`; fewer where one takes long.
    #[must_use]
    pub fn mutations(mut self, count: usize) -> Target {
        self.mutations = count;
        self
    }

    /// What an input may make it allocate at a time: so many bytes, and so many for each byte of it.
    #[must_use]
    pub fn memory(mut self, bytes: usize, for_each: usize) -> Target {
        self.memory = (bytes, for_each);
        self
    }

    /// Runs it.
    ///
    /// # Panics
    /// An input broke it.
    pub fn run(self, target: impl Fn(&[u8]) + RefUnwindSafe) {
        let variable = |name| std::env::var(name).ok();
        let number = |name| variable(name).and_then(|text| text.parse::<u64>().ok());
        if let Some(path) = variable("REFIT_FUZZ_INPUT") {
            let input = std::fs::read(&path).expect("REFIT_FUZZ_INPUT can be read");
            return target(&input);
        }
        let mut inputs = self.seeds.clone();
        inputs.extend(stored::read(&self.directory));
        assert!(!inputs.is_empty(), "{} has no seeds", self.name);
        let seed = number("REFIT_FUZZ_SEED").unwrap_or(0x5eed);
        let session = Session {
            random: Random::new(seed),
            end: number("REFIT_FUZZ_SECONDS").map(|s| Instant::now() + Duration::from_secs(s)),
            coverage: sys::coverage::Coverage::default(),
            run: 0,
            slowest: Duration::ZERO,
            most_bytes: 0,
            target: &self,
            one: &target,
        };
        session.all(inputs);
    }
}

/// One run of a target.
struct Session<'a, F> {
    target: &'a Target,
    one: &'a F,
    random: Random,
    /// `None`: it is one of many tests.
    end: Option<Instant>,
    coverage: sys::coverage::Coverage,
    run: u64,
    slowest: Duration,
    most_bytes: usize,
}

impl<F: Fn(&[u8]) + RefUnwindSafe> Session<'_, F> {
    fn all(mut self, mut inputs: Vec<Vec<u8>>) {
        let current = self
            .end
            .map(|_| sys::current::Current::create(self.target.name));
        for input in &inputs {
            self.try_one(current.as_ref(), input);
        }
        let mut mutated = 0;
        while match self.end {
            Some(end) => Instant::now() < end,
            None => mutated < self.target.mutations,
        } {
            let chosen = self.chosen(&inputs);
            let input = self
                .target
                .mutator
                .mutate(chosen, &inputs, &mut self.random);
            if self.try_one(current.as_ref(), &input) && self.end.is_some() {
                inputs.push(input);
            }
            mutated += 1;
        }
        if self.end.is_some() {
            println_counted(&format!(
                "{}: {} inputs, {} of them kept, {} branches reached, the slowest took {:.1} ms, the most memory was {} KiB",
                self.target.name,
                self.run,
                inputs.len(),
                self.coverage.reached(),
                self.slowest.as_secs_f64() * 1e3,
                self.most_bytes >> 10,
            ));
        }
    }

    /// Half of the time one of those that were found last.
    fn chosen<'i>(&mut self, inputs: &'i [Vec<u8>]) -> &'i [u8] {
        let newest = inputs.len().min(16);
        let from = match self.random.below(2) {
            0 => inputs.len() - 1 - self.random.below(newest),
            _ => self.random.below(inputs.len()),
        };
        &inputs[from]
    }

    /// Whether it reached something new.
    fn try_one(&mut self, current: Option<&sys::current::Current>, input: &[u8]) -> bool {
        if let Some(current) = current {
            current.set(input);
        }
        self.coverage.reset();
        let tried = failure::run(self.one, input);
        let is_new = self.coverage.is_new();
        self.run += 1;
        self.slowest = self.slowest.max(tried.took);
        self.most_bytes = self.most_bytes.max(tried.bytes);
        if let Some(failure) = self.failure(input, &tried) {
            self.fail(input, &failure);
        }
        is_new
    }

    fn failure(&self, input: &[u8], tried: &failure::Tried) -> Option<Failure> {
        if let Some(failure) = &tried.failure {
            return Some(failure.clone());
        }
        let (bytes, for_each) = self.target.memory;
        if tried.bytes > bytes + for_each * input.len() {
            return Some(Failure::Memory);
        }
        // Where it is one of many tests, others run beside it.
        (self.end.is_some() && tried.took > SLOWEST && {
            failure::run(self.one, input).took > SLOWEST
        })
        .then_some(Failure::Time)
    }

    /// Stores a smaller input that does the same.
    fn fail(&self, input: &[u8], failure: &Failure) {
        let mut small = input.to_vec();
        if self.end.is_some() {
            small = failure::smaller(input, |input| {
                self.failure(input, &failure::run(self.one, input)).as_ref() == Some(failure)
            });
            let path = stored::store(&self.target.directory, &small);
            panic!(
                "{}: {failure}; the input is {}",
                self.target.name,
                path.display()
            );
        }
        let shown = &small[..small.len().min(2000)];
        panic!(
            "{}: {failure}; the input is {:?}",
            self.target.name,
            String::from_utf8_lossy(shown)
        );
    }
}

/// A line that `scripts/fuzz` shows.
fn println_counted(line: &str) {
    use std::io::Write;
    // On a line of its own: libtest has begun one. Nothing is told where stderr is closed.
    let _ = writeln!(std::io::stderr(), "\ncounted: {line}");
}

#[cfg(test)]
mod tests;
