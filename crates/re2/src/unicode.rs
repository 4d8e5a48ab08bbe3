//! The names that Go accepts in `\p{...}`.

/// The scripts that Go's parser finds. It looks them up by a name without underscores in a table whose keys have
/// underscores, so scripts of more than one word do not exist for it.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
     Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic \
     Deseret Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati \
     Gurmukhi Han Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi \
     Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam \
     Mandaic Manichaean Marchen Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko \
     Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian \
     Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana \
     Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

/// General categories: Go's canonical name, then the name that `regex` knows.
const CATEGORIES: &str = "C C, Cc Cc, Cf Cf, Cn Cn, Co Co, L L, Lc LC, Ll Ll, Lm Lm, Lo Lo, Lt Lt, Lu Lu, M M, \
     Mc Mc, Me Me, Mn Mn, N N, Nd Nd, Nl Nl, No No, P P, Pc Pc, Pd Pd, Pe Pe, Pf Pf, Pi Pi, Po Po, Ps Ps, S S, \
     Sc Sc, Sk Sk, Sm Sm, So So, Z Z, Zl Zl, Zp Zp, Zs Zs, Casedletter LC, Closepunctuation Pe, Cntrl Cc, \
     Combiningmark M, Connectorpunctuation Pc, Control Cc, Currencysymbol Sc, Dashpunctuation Pd, \
     Decimalnumber Nd, Digit Nd, Enclosingmark Me, Finalpunctuation Pf, Format Cf, Initialpunctuation Pi, \
     Letter L, Letternumber Nl, Lineseparator Zl, Lowercaseletter Ll, Mark M, Mathsymbol Sm, Modifierletter Lm, \
     Modifiersymbol Sk, Nonspacingmark Mn, Number N, Openpunctuation Ps, Other C, Otherletter Lo, Othernumber No, \
     Otherpunctuation Po, Othersymbol So, Paragraphseparator Zp, Privateuse Co, Punct P, Punctuation P, \
     Separator Z, Spaceseparator Zs, Spacingmark Mc, Symbol S, Titlecaseletter Lt, Unassigned Cn, \
     Uppercaseletter Lu";

/// A class that matches nothing.
pub(crate) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// The class of a Unicode name in the syntax of `regex`, or none when Go does not know the name.
pub(crate) fn class(name: &str) -> Option<String> {
    let name = canonical(name);
    match name.as_str() {
        "Any" => return Some(r"\p{Any}".to_owned()),
        "Assigned" => return Some(r"\p{Assigned}".to_owned()),
        "Ascii" => return Some(r"\p{ASCII}".to_owned()),
        // No character of a Rust string is a surrogate.
        "Cs" | "Surrogate" => return Some(NOTHING.to_owned()),
        _ => {}
    }
    let category = CATEGORIES.split(", ").find_map(|entry| {
        let (key, value) = entry.split_once(' ')?;
        (key == name).then(|| format!(r"\p{{gc={value}}}"))
    });
    let script = || SCRIPTS.split(' ').any(|script| script == name).then(|| format!(r"\p{{sc={name}}}"));
    category.or_else(script)
}

/// Go's canonical spelling: an upper case letter and then lower case ones, without `_`, `-` and spaces.
fn canonical(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')) {
        out.push(if out.is_empty() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    }
    out
}
