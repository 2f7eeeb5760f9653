//! A disk that takes pages and loses them, as the kernel tells of it: late, and only if asked.
use casemate_keeper::store::{PageStore, StoreConfig, StoreError};
use std::path::{Path, PathBuf};
use std::process::Command;

fn done(command: &str, args: &[&str]) -> bool {
    Command::new(command).args(args).output().is_ok_and(|output| output.status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A file system on an image that promises more than the small file system under it has.
struct Leaky {
    below: PathBuf,
    above: PathBuf,
}

impl Leaky {
    fn new() -> Option<Leaky> {
        let base = std::env::temp_dir().join(format!("casemate-leaky-{}", std::process::id()));
        let leaky = Leaky { below: base.join("below"), above: base.join("above") };
        std::fs::create_dir_all(&leaky.below).ok()?;
        std::fs::create_dir_all(&leaky.above).ok()?;
        let image = leaky.below.join("image");
        let mounted = done("mount", &["-t", "tmpfs", "-o", "size=6m", "tmpfs", text(&leaky.below)])
            && std::fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).is_ok()
            && done("mkfs.ext4", &["-q", "-O", "^has_journal", text(&image)])
            && done("mount", &["-o", "loop", text(&image), text(&leaky.above)]);
        mounted.then_some(leaky)
    }
}

impl Drop for Leaky {
    fn drop(&mut self) {
        let _ = done("umount", &[text(&self.above)]);
        let _ = done("umount", &[text(&self.below)]);
        let _ = self.below.parent().map(std::fs::remove_dir_all);
    }
}

#[test]
fn a_page_that_the_disk_lost_is_told_from_one_that_was_changed() {
    let Some(leaky) = Leaky::new() else {
        eprintln!("skipped: needs root, mkfs.ext4 and a loop device");
        return;
    };
    let config = StoreConfig {
        crypt_limit_bytes: Some(4 * 4096),
        swap: Some(leaky.above.join("swap")),
        ..StoreConfig::default()
    };
    let store = PageStore::new(config).expect("a swap file");
    let mut places = Vec::new();
    for i in 0..4096_u32 {
        match store.put(|page| page.fill(i as u8 | 1)) {
            Ok((place, ..)) => places.push(place),
            Err(StoreError::SwapIo { .. } | StoreError::SwapFull { .. }) => {
                eprintln!("the disk could not keep the loss to itself: page {i} was refused");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let (on_swap, in_memory) = (places[4000], places[4095]);
    assert!(store.swap_trouble(in_memory).is_none(), "the disk has no part in this page");
    let trouble = store.swap_trouble(on_swap);
    assert!(
        matches!(trouble, Some(StoreError::SwapIo { .. } | StoreError::SwapFull { .. })),
        "{trouble:?}"
    );
    drop(store);
}
