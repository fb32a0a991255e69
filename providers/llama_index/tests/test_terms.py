"""What counts as the same word: other Unicode forms, accents, scripts without spaces; and English as it was."""

from __future__ import annotations

import unicodedata

import pytest
from adk_airflow_llama_index import open_index, refresh_index
from adk_airflow_llama_index.terms import document_terms, query_terms


@pytest.fixture
def find(tmp_path, write):
    """The names of the texts that a query finds, best first."""

    def find_texts(query, **texts):
        location = refresh_index(write(tmp_path / "texts", texts), tmp_path / "index").location
        return [passage.document for passage in open_index(location).search(query)]

    return find_texts


@pytest.mark.parametrize(
    ("query", "text", "other"),
    [
        pytest.param("明月", "床前明月光，疑是地上霜。", "春眠不觉晓，处处闻啼鸟。", id="Chinese"),
        pytest.param("月", "床前明月光", "春眠不觉晓", id="one Chinese character"),
        pytest.param("明月在哪里？", "床前明月光", "春眠不觉晓", id="a Chinese question"),
        pytest.param("明月", "床前明\n月光", "春眠不觉晓", id="a word over the end of a line"),
        pytest.param("明月", "床前明\r\n  月光", "春眠不觉晓", id="a word over the end of an indented line"),
        pytest.param("手機", "新的iPhone手機2026年", "舊的電視", id="Chinese between Latin letters"),
        pytest.param("iphone", "新的iPhone手機2026年", "舊的電視", id="Latin letters between Chinese"),
        pytest.param("東京都", "私は東京都に住んでいます。", "大阪は雨です。", id="Japanese"),
        pytest.param("コンピュータ", "新しいコンピューターを買った。", "大阪は雨です。", id="Katakana"),
        pytest.param("ｺﾝﾋﾟｭｰﾀｰ", "新しいコンピューターを買った。", "大阪は雨です。", id="half-width Katakana"),
        pytest.param("ガラス", unicodedata.normalize("NFD", "ガラスの靴"), "木の靴", id="decomposed Katakana"),
        pytest.param("หนังสือ", "ฉันอ่านหนังสือทุกวัน", "แมวกินปลา", id="Thai"),
        pytest.param("น้ำ", "ดื่มน้ำเย็น", "แมวกินปลา", id="Thai with sara am"),
        pytest.param("ປຶ້ມ", "ຂ້ອຍອ່ານປຶ້ມທຸກມື້", "ແມວກິນປາ", id="Lao"),
        pytest.param("សៀវភៅ", "ខ្ញុំអានសៀវភៅរាល់ថ្ងៃ", "ឆ្មាស៊ីត្រី", id="Khmer"),
        pytest.param("ខ្មែរ", "ភាសា\u200bខ្មែរ", "ឆ្មាស៊ីត្រី", id="Khmer with zero width spaces"),
        pytest.param("ភាសាខ្មែរ", "ភាសា\u200bខ្មែរ", "ឆ្មាស៊ីត្រី", id="a Khmer query over a zero width space"),
        pytest.param("စာအုပ်", "ကျွန်တော်စာအုပ်ဖတ်သည်", "ကြောင်ငါး", id="Burmese"),
        pytest.param("학교", "아이들은 학교에서 배운다.", "고양이가 물고기를 먹는다.", id="Korean with a particle"),
        pytest.param("학교", unicodedata.normalize("NFD", "아이들은 학교에서"), "고양이가 먹는다.", id="decomposed Korean"),
        pytest.param("हिन्दी", "हिन्दी भाषा का व्याकरण", "बिल्ली मछली खाती है", id="Hindi"),
        pytest.param("தமிழ்", "தமிழ் மொழி", "பூனை மீன்", id="Tamil"),
        pytest.param("كتاب", "قرأت كِتَابٌ جديد", "القط يأكل", id="Arabic with vowels"),
        pytest.param("كتـــاب", "كتاب جديد", "القط يأكل", id="stretched Arabic"),
        pytest.param("שלום", "שָׁלוֹם עולם", "חתול אוכל", id="Hebrew with points"),
        pytest.param("می\u200cخواهم", "می\u200cخواهم بروم", "گربه ماهی", id="Persian with a joiner"),
        pytest.param("кошка", "КОШКА СПИТ", "собака лает", id="Cyrillic capitals"),
        pytest.param("ΣΊΣΥΦΟΣ", "Ο Σίσυφος", "Η γάτα", id="Greek final sigma"),
        pytest.param("cafe\u0301", "the café is open", "a bar", id="decomposed query"),
        pytest.param("café", "the cafe\u0301 is open", "a bar", id="decomposed text"),
        pytest.param("cafe", "the café is open", "a bar", id="query without accent"),
        pytest.param("CAFÉ", "the cafe is open", "a bar", id="text without accent"),
        pytest.param("straße", "HAUPT STRASSE", "Gasse", id="sharp s"),
        pytest.param("istanbul", "İSTANBUL büyük", "Ankara", id="Turkish capital I with a dot"),
        pytest.param("ısparta", "ISPARTA gül", "Ankara", id="Turkish i without a dot"),
        pytest.param("lodz", "Łódź to miasto", "Ankara", id="Polish"),
        pytest.param("елка", "зелёная ёлка", "берёза", id="Russian yo"),
        pytest.param("pho bo", unicodedata.normalize("NFD", "phở bò"), "Ankara", id="decomposed Vietnamese"),
        pytest.param("Malmo", "Malmö och Malmø", "Ankara", id="Nordic"),
        pytest.param("office", "the oﬃce", "a bar", id="ligature"),
        pytest.param("abc", "ＡＢＣ株式会社", "a bar", id="full width"),
        pytest.param("example", "an exam\u00adple", "a bar", id="soft hyphen"),
        pytest.param("𠮷野家", "昨日𠮷野家で食べた", "大阪は雨です。", id="beyond the basic plane"),
    ],
)
def test_a_word_is_found_in_its_text_and_in_no_other(query, text, other, find):
    assert find(query, text=text, other=other) == ["text"]


def test_a_document_is_found_in_either_form_and_the_same_way(find):
    texts = {form: unicodedata.normalize(form, "déjà vu, Ångström, 학교에서, が") for form in ("NFC", "NFD", "NFKC", "NFKD")}
    for query in ("déjà", "Ångström", "학교", "が"):
        for form in texts:
            assert len(find(unicodedata.normalize(form, query), **texts)) == 4


def test_the_exact_word_comes_before_the_one_without_accents(find):
    assert find("résumé", accents="one résumé here", none="one resume here") == ["accents", "none"]


def test_a_longer_run_is_found_before_scattered_characters(find):
    assert find("东京大学", whole="他在东京大学读书", parts="他在东京读书") == ["whole", "parts"]
    assert find("京东", whole="他在东京大学读书") == []


def test_english_has_the_terms_that_bm25s_takes_by_default():
    import bm25s
    import Stemmer

    text = "The zebras' 12 runs: don't e-mail C++ or snake_case x 3.14, at a well-known (boundary)\nlayer; it is 2nd."
    (expected,) = bm25s.tokenize(text, stemmer=Stemmer.Stemmer("english"), return_ids=False, show_progress=False)
    assert document_terms([text]) == [expected]
    assert query_terms(text) == expected


@pytest.mark.parametrize("text", ["", "the of", "a я", "?! … 。、", "🚀 ©", "\u200b\u00ad\u0301"])
def test_what_is_no_word_has_no_terms(text):
    assert (document_terms([text]), query_terms(text)) == ([[]], [])


def test_documents_without_spaces_are_cut_into_passages_and_found(tmp_path, write):
    story = "从前有一座山，山里有一座庙，庙里有个老和尚在讲故事。" * 300 + "最后来了一只斑马。"
    report = refresh_index(
        write(tmp_path / "texts", {"story.txt": story}), tmp_path / "index", chunk_size=200, chunk_overlap=20
    )
    assert report.passages > 10
    (passage,) = open_index(report.location).search("斑马")
    assert "斑马" in passage.text
    assert len(passage.text) < 1000
