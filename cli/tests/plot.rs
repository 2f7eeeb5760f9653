//! `casemate plot` on CSV files.

mod common;

use std::fs;

use common::{Folder, run};

#[test]
fn what_cannot_be_drawn_of_a_file_is_told_by_its_name() {
    let folder = Folder::new("plot-csv");
    let out = folder.arg("drawing.svg");
    let drawn = ["--value", "b", "--by", "a", "--series", "c"];
    for (name, text, flags, code, words) in [
        ("twice.csv", "a,b,a\n1,2,3\n", &drawn[..], 1, "two columns that are named a"),
        ("ragged.csv", "a,b,c\n1,2\n", &drawn, 1, "line 2 has 2 values for 3 columns"),
        ("nan.csv", "a,b,c\n1,2,3\n2,nan,3\n", &drawn, 1, "line 3: b is \"nan\", and no number"),
        ("plain.csv", "a,b,c\n1,2,3\n", &drawn[..2], 125, "give --by and --series too"),
        ("plain.csv", "a,b,c\n1,2,3\n", &drawn[2..], 125, "give --value too"),
    ] {
        fs::write(folder.path(name), text).expect("it is ours");
        let refused = run(&[&["plot", &folder.arg(name), "-o", &out][..], flags].concat());
        assert_eq!(refused.code, code, "{name}: {}", refused.stderr);
        assert!(refused.stderr.contains(name), "{name}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{name}: {}", refused.stderr);
        assert!(!folder.path("drawing.svg").exists(), "{name}");
    }
}

#[test]
fn no_drawing_has_a_place_that_is_no_number() {
    let folder = Folder::new("plot-far");
    let (file, out) = (folder.arg("x.csv"), folder.arg("drawing.svg"));
    let plot = |kind: &str, text: &str| {
        fs::write(&file, text).expect("it is ours");
        let _ = fs::remove_file(&out);
        let named = ["--value", "b", "--by", "a", "--series", "c"];
        run(&[&["plot", &file, "-o", &out, "--kind", kind][..], &named].concat())
    };
    for kind in ["bars", "lines"] {
        let far = plot(kind, "a,b,c\n1,1e308,3\n3,-1e308,3\n");
        assert_eq!(far.code, 1, "{}", far.stderr);
        assert!(far.stderr.contains("the value 1e308 cannot be drawn"), "{}", far.stderr);
        for text in [
            "a,b,c\n1,1e300,3\n3,-1e300,3\n",
            "a,b,c\n1,1e-323,3\n",
            "a,b,c\n1e308,1,3\n-1e308,2,3\n",
            "a,b,c\n100000000000000000,1,3\n",
        ] {
            let drawn = plot(kind, text);
            assert_eq!(drawn.code, 0, "{text}: {}", drawn.stderr);
            let drawing = fs::read_to_string(&out).expect("it was drawn");
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{text}: {drawing}");
        }
    }
}
