use super::*;

fn record(path: &str, event: Event) -> Record {
    Record { path: PathBuf::from(path), event }
}

fn write(offset: u64, byte: u8, len: usize) -> Event {
    Event::Write { offset, data: vec![byte; len] }
}

fn disk(events: &[(&str, Event)]) -> Disk {
    let mut disk = Disk::default();
    for (path, event) in events {
        disk.apply(&record(path, event.clone()));
    }
    disk
}

/// A generator of its own, for choices that differ and repeat.
fn choices(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    }
}

fn images(disk: &Disk) -> Vec<Image> {
    (0..200).map(|seed| disk.crash(choices(seed))).collect()
}

fn named(events: &[(&str, Event)]) -> Vec<(&'static str, Event)> {
    let mut all = vec![
        ("/d/f", Event::Create),
        ("/d", Event::SyncStart { number: 1 }),
        ("/d", Event::SyncEnd { number: 1 }),
    ];
    all.extend(events.iter().map(|(_, event)| ("/d/f", event.clone())));
    all
}

#[test]
fn what_was_synced_is_there_and_what_came_later_may_be() {
    let disk = disk(&named(&[
        ("", write(0, b'a', 1024)),
        ("", Event::SyncStart { number: 2 }),
        ("", write(1024, b'b', 1024)),
        ("", Event::SyncEnd { number: 2 }),
    ]));
    let files: Vec<Vec<u8>> =
        images(&disk).into_iter().map(|image| image.0[Path::new("/d/f")].clone()).collect();
    assert!(files.iter().all(|file| file[..1024] == [b'a'; 1024]), "the synced part is safe");
    assert!(files.iter().any(|file| file.len() == 1024), "a write after the start of the sync may be lost");
    assert!(files.iter().any(|file| file.len() == 2048 && file[1024..] == [b'b'; 1024]), "or be there");
    let torn = |file: &Vec<u8>| file.len() == 2048 && file[1024] == 0 && file[2047] == b'b';
    assert!(files.iter().any(torn), "or be there in part");
}

#[test]
fn a_sync_that_did_not_end_promises_nothing() {
    let disk = disk(&named(&[("", write(0, b'a', 512)), ("", Event::SyncStart { number: 2 })]));
    assert!(images(&disk).iter().any(|image| image.0[Path::new("/d/f")].is_empty()));
}

#[test]
fn a_name_is_safe_after_a_sync_of_its_directory() {
    let fresh = disk(&[
        ("/d/f", Event::Create),
        ("/d/f", write(0, b'a', 512)),
        ("/d/f", Event::SyncStart { number: 1 }),
        ("/d/f", Event::SyncEnd { number: 1 }),
    ]);
    assert!(images(&fresh).iter().any(|image| image.0.is_empty()), "the file is synced, its name is not");
    let safe = disk(&named(&[]));
    assert!(images(&safe).iter().all(|image| image.0.len() == 1));
}

#[test]
fn a_rename_replaces_or_has_not_happened() {
    let mut events = named(&[]);
    events.extend([
        ("/d/new", Event::Create),
        ("/d/new", write(0, b'n', 3)),
        ("/d/new", Event::SyncStart { number: 2 }),
        ("/d/new", Event::SyncEnd { number: 2 }),
        ("/d/new", Event::Rename { to: PathBuf::from("/d/f") }),
    ]);
    let disk = disk(&events);
    let contents: Vec<Vec<u8>> =
        images(&disk).into_iter().filter_map(|i| i.0.get(Path::new("/d/f")).cloned()).collect();
    assert_eq!(contents.len(), 200, "the name itself was safe before");
    assert!(contents.iter().any(Vec::is_empty) && contents.iter().any(|bytes| bytes == b"nnn"));
}
