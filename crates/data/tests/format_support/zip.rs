//! Zip archives, written by hand so that they can be as large ones are, or wrong.

/// A member of a zip file.
pub struct Zipped<'a> {
    pub name: &'a str,
    pub content: &'a [u8],
    pub deflate: bool,
    /// Its sizes and its position are in a zip64 field, as those of large members are.
    pub zip64: bool,
}

/// A `.npz` file as `numpy.savez` writes it, or `numpy.savez_compressed`.
pub fn npz(arrays: &[(&str, Vec<u8>)], deflate: bool) -> Vec<u8> {
    let names: Vec<String> = arrays.iter().map(|(name, _)| format!("{name}.npy")).collect();
    let member = |(name, (_, content)): (&'_ String, &'_ (&str, Vec<u8>))| {
        zip_member(&Zipped { name, content, deflate, zip64: false })
    };
    zip_file(&names.iter().zip(arrays).map(member).collect::<Vec<_>>(), false)
}

/// The bytes of a member: its local part without the position, and its entry in the directory,
/// which takes the position.
pub struct ZipMember {
    pub local: Vec<u8>,
    pub entry: Box<dyn Fn(u64) -> Vec<u8>>,
}

pub fn zip_member(member: &Zipped) -> ZipMember {
    use std::io::Write;
    let mut crc = flate2::Crc::new();
    crc.update(member.content);
    let mut packed = member.content.to_vec();
    if member.deflate {
        let mut encoder = flate2::write::DeflateEncoder::new(vec![], Default::default());
        encoder.write_all(member.content).unwrap();
        packed = encoder.finish().unwrap();
    }
    let (len, zip64, name) = (member.content.len() as u64, member.zip64, member.name.to_string());
    let size = |size: u64| (if zip64 { u32::MAX } else { size as u32 }).to_le_bytes();
    let method: u16 = if member.deflate { 8 } else { 0 };
    // From the flags to the sizes, in both parts.
    let mut shared = vec![0, 0];
    shared.extend(method.to_le_bytes());
    shared.extend([0; 4]);
    shared.extend(crc.sum().to_le_bytes());
    shared.extend(size(packed.len() as u64));
    shared.extend(size(len));
    shared.extend((name.len() as u16).to_le_bytes());
    let sizes = [len.to_le_bytes(), (packed.len() as u64).to_le_bytes()].concat();
    let extra = move |rest: &[u8]| {
        let field = [&sizes[..], rest].concat();
        let head = [1_u16.to_le_bytes(), (field.len() as u16).to_le_bytes()].concat();
        if zip64 { [head, field].concat() } else { vec![] }
    };
    let mut local = b"PK\x03\x04\x2d\0".to_vec();
    local.extend(&shared);
    local.extend((extra(&[]).len() as u16).to_le_bytes());
    local.extend(name.as_bytes());
    local.extend(extra(&[]));
    local.extend(packed);
    let entry = Box::new(move |at: u64| {
        let extra = extra(&at.to_le_bytes());
        let mut entry = b"PK\x01\x02\x2d\x03\x2d\0".to_vec();
        entry.extend(&shared);
        entry.extend((extra.len() as u16).to_le_bytes());
        entry.extend([0; 10]);
        entry.extend(if zip64 { [255; 4] } else { (at as u32).to_le_bytes() });
        entry.extend(name.as_bytes());
        entry.extend(extra);
        entry
    });
    ZipMember { local, entry }
}

/// The members and their directory, whose end says where it is in a zip64 record if that is asked
/// for.
pub fn zip_file(members: &[ZipMember], zip64: bool) -> Vec<u8> {
    let (mut file, mut entries) = (vec![], vec![]);
    for member in members {
        entries.extend((member.entry)(file.len() as u64));
        file.extend(&member.local);
    }
    let (start, count) = (file.len() as u64, members.len() as u64);
    file.extend(&entries);
    if zip64 {
        let record = file.len() as u64;
        file.extend(b"PK\x06\x06");
        file.extend(44_u64.to_le_bytes());
        file.extend([0; 12]);
        for number in [count, count, entries.len() as u64, start] {
            file.extend(number.to_le_bytes());
        }
        file.extend(b"PK\x06\x07\0\0\0\0");
        file.extend(record.to_le_bytes());
        file.extend([1, 0, 0, 0]);
    }
    let count = if zip64 { u16::MAX } else { count as u16 };
    let start = if zip64 { u32::MAX } else { start as u32 };
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    file.extend((entries.len() as u32).to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0; 2]);
    file
}
