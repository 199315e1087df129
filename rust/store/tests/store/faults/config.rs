//! A configuration that is saved while calls fail or the power goes: the old one or the new one, and never none.
use super::{Failing, inode, seeds};
use crate::chance::Chance;
use crate::directory;
use crate::figures::{Figures, Found};
use rmqfast_store::file::disk::{self, Call, Watcher};
use rmqfast_store::store::config_files::{ConfigFile, save};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NAME: &str = "consumerOffset.json";

/// Offsets of some queues; the generation can be read from them.
fn offsets(generation: u64) -> Value {
    json!({"offsetTable": {"t@g": {"0": generation, "1": generation}, "%RETRY%g@g": {"0": generation}}})
}

fn generation(root: &Path) -> Option<u64> {
    let file = ConfigFile::load(root, NAME);
    let value = file.require_readable().unwrap_or_else(|error| panic!("{error}"))?;
    let generation = value["offsetTable"]["t@g"]["0"].as_u64().expect("a number");
    assert_eq!(*value, offsets(generation), "half old and half new");
    Some(generation)
}

/// Saves while the `n`-th call fails; whether one did.
fn check_failing(fails_at: u64, for_good: bool) -> bool {
    let dir = directory();
    (1..3).for_each(|n| save(dir.path(), NAME, offsets(n)).expect("saved"));
    let failing = Arc::new(Failing { calls: Mutex::new(0), fails_at, for_good });
    let watch = disk::watch(dir.path(), failing.clone());
    let saved = save(dir.path(), NAME, offsets(3));
    drop(watch);
    let generation_left = generation(dir.path()).expect("never none");
    assert!(
        generation_left == 3 || generation_left == 2 && saved.is_err(),
        "call {fails_at}: {generation_left}, {saved:?}"
    );
    save(dir.path(), NAME, offsets(4)).expect("saved");
    let backup = fs::read_to_string(dir.path().join("config/consumerOffset.json.bak")).expect("kept");
    assert!(generation(dir.path()) == Some(4) && backup.contains(&format!("0:{generation_left}")));
    *failing.calls.lock().expect("whole") >= fails_at
}

#[test]
fn whatever_call_fails_the_configuration_is_the_old_one_or_the_new_one() {
    let mut figures = Figures::new("a call of a save of the configuration fails");
    for for_good in [false, true] {
        let (mut fails_at, mut has_failed) = (0, true);
        while has_failed {
            fails_at += 1;
            figures.run(fails_at, || {
                has_failed = check_failing(fails_at, for_good);
                Found::default()
            });
        }
        assert!(fails_at > 8, "a save has nine calls: {fails_at}");
    }
    figures.tell();
}

#[test]
fn a_configuration_survives_a_loss_of_power_in_the_middle_of_a_save() {
    let mut figures = Figures::new("loss of power in a save of the configuration");
    for seed in seeds(400) {
        figures.run(seed, || {
            let (dir, left, mut chance) = (directory(), directory(), Chance(seed));
            fs::create_dir(dir.path().join("config")).expect("made");
            fs::create_dir(left.path().join("config")).expect("made");
            let power = Arc::new(Power::new(dir.path(), 1 + chance.below(40)));
            let watch = disk::watch(dir.path(), power.clone());
            let saved = (1..10).take_while(|n| save(dir.path(), NAME, offsets(*n)).is_ok()).count() as u64;
            drop(watch);
            power.cut(&mut chance, left.path());
            let kept = generation(left.path()).unwrap_or(0);
            assert!(kept <= saved + 1, "{kept} of {saved} saved");
            Found { lost: saved.saturating_sub(kept), ..Found::default() }
        });
    }
    figures.tell();
}

/// A directory that loses power at a call: files that were not waited for are in pieces, and each name that was not waited for
/// is the old one or the new one.
struct Power {
    directory: PathBuf,
    dies_at: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: u64,
    synced: BTreeSet<u64>,
    durable: BTreeMap<PathBuf, Vec<u8>>,
}

impl Power {
    fn new(root: &Path, dies_at: u64) -> Self {
        Self { directory: root.join("config"), dies_at, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
        let entries = fs::read_dir(&self.directory).expect("a directory").flatten().map(|entry| entry.path());
        entries.map(|path| (path.clone(), (inode(&path).expect("there"), fs::read(&path).expect("read")))).collect()
    }

    fn cut(&self, chance: &mut Chance, into: &Path) {
        let (state, files) = (self.state(), self.files());
        let names: BTreeSet<_> = state.durable.keys().chain(files.keys()).collect();
        for name in names {
            let content = match chance.below(2) {
                0 => state.durable.get(name).cloned(),
                _ => files.get(name).map(|(inode, content)| match state.synced.contains(inode) {
                    true => content.clone(),
                    false => content[..chance.below(content.len() as u64 + 1) as usize].to_vec(),
                }),
            };
            if let Some(content) = content {
                fs::write(into.join("config").join(name.file_name().expect("a name")), content).expect("written");
            }
        }
    }
}

impl Watcher for Power {
    fn before(&self, _: Call, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.calls += u64::from(path.starts_with(&self.directory));
        if state.calls > self.dies_at { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }

    fn after(&self, call: Call, path: &Path) {
        let files = self.files();
        let mut state = self.state();
        match call {
            Call::Sync => drop(inode(path).map(|inode| state.synced.insert(inode))),
            Call::Create => drop(inode(path).map(|inode| state.synced.remove(&inode))),
            Call::SyncDirectory => {
                let synced = |inode: &u64| state.synced.contains(inode);
                let durable = files.iter().map(|(name, (inode, content))| {
                    (name.clone(), if synced(inode) { content.clone() } else { Vec::new() })
                });
                state.durable = durable.collect();
            }
            _ => {}
        }
    }
}
