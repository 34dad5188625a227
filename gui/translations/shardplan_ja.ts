<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ja_JP" sourcelanguage="en_GB">
<context>
    <name>AccuracyModels</name>
    <message>
        <source>records of</source>
        <translation>記録の種類</translation>
    </message>
    <message>
        <source>figure</source>
        <translation>量</translation>
    </message>
    <message>
        <source>records</source>
        <translation>件数</translation>
    </message>
    <message>
        <source>mean |error|</source>
        <translation>平均 |誤差|</translation>
    </message>
    <message>
        <source>mean error</source>
        <translation>平均誤差</translation>
    </message>
    <message>
        <source>largest</source>
        <translation>最大</translation>
    </message>
    <message>
        <source>of record</source>
        <translation>その記録</translation>
    </message>
    <message>
        <source>record</source>
        <translation>記録</translation>
    </message>
    <message>
        <source>framework</source>
        <translation>フレームワーク</translation>
    </message>
    <message>
        <source>predicted</source>
        <translation>予測</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>実測</translation>
    </message>
    <message>
        <source>error</source>
        <translation>誤差</translation>
    </message>
    <message>
        <source>all</source>
        <translation>すべて</translation>
    </message>
    <message>
        <source>over %1 records: (predicted − measured) ÷ measured of each; measured: read from records under data/measurements</source>
        <translation>%1 件の記録それぞれの(予測 − 実測)÷ 実測。実測は data/measurements の記録から</translation>
    </message>
    <message>
        <source>(%1 − %2) ÷ %2 = %3; predicted for the record&apos;s own job, measured: read from the record %4</source>
        <translation>(%1 − %2) ÷ %2 = %3。予測は記録自身のジョブに対するもの、実測は記録 %4 から</translation>
    </message>
    <message>
        <source>allocated peak</source>
        <translation>割り当てのピーク</translation>
    </message>
    <message>
        <source>reserved</source>
        <translation>予約</translation>
    </message>
    <message>
        <source>each GPU</source>
        <translation>各 GPU</translation>
    </message>
    <message>
        <source>time of a step</source>
        <translation>1 ステップの時間</translation>
    </message>
</context>
<context>
    <name>CatalogueModels</name>
    <message>
        <source>model</source>
        <translation>モデル</translation>
    </message>
    <message>
        <source>parameters</source>
        <translation>パラメータ数</translation>
    </message>
    <message>
        <source>family</source>
        <translation>系統</translation>
    </message>
    <message>
        <source>also found as</source>
        <translation>別名</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>usable memory</source>
        <translation>使えるメモリ</translation>
    </message>
    <message>
        <source>memory bandwidth</source>
        <translation>メモリ帯域</translation>
    </message>
    <message>
        <source>standing</source>
        <translation>根拠</translation>
    </message>
    <message>
        <source>%1 GB/s</source>
        <translation>%1 GB/s</translation>
    </message>
    <message>
        <source>confirmed by sources</source>
        <translation>出典で確認済み</translation>
    </message>
    <message>
        <source>partly unverified</source>
        <translation>一部未確認</translation>
    </message>
    <message>
        <source>machine</source>
        <translation>マシン</translation>
    </message>
    <message>
        <source>provider</source>
        <translation>提供元</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>host memory</source>
        <translation>ホストメモリ</translation>
    </message>
    <message>
        <source>tensor</source>
        <translation>テンソル</translation>
    </message>
    <message>
        <source>shape</source>
        <translation>形状</translation>
    </message>
    <message>
        <source>times</source>
        <translation>回数</translation>
    </message>
</context>
<context>
    <name>EstimateModels</name>
    <message>
        <source>not used</source>
        <translation>使わない</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 / %2</translation>
    </message>
    <message>
        <source>%1 to spare</source>
        <translation>余裕 %1</translation>
    </message>
    <message>
        <source>%1 too much</source>
        <translation>%1 超過</translation>
    </message>
    <message>
        <source>what a node has is not known</source>
        <translation>ノードの搭載量が不明です</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>; upper bound %1</source>
        <translation>、上限 %1</translation>
    </message>
    <message>
        <source>Host</source>
        <translation>ホスト</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>compute</source>
        <translation>計算</translation>
    </message>
    <message>
        <source>operations of the step at the rates of this GPU, operation by operation</source>
        <translation>ステップの演算を 1 つずつ、この GPU の性能で数えた値</translation>
    </message>
    <message>
        <source>exposed communication</source>
        <translation>隠れない通信</translation>
    </message>
    <message>
        <source>bytes sent over the links, less what hides behind computing</source>
        <translation>リンクで送る量から、計算に隠れる分を除いた値</translation>
    </message>
    <message>
        <source>copies</source>
        <translation>コピー</translation>
    </message>
    <message>
        <source>bytes copied to and from the host and NVMe</source>
        <translation>ホストや NVMe との間でコピーする量</translation>
    </message>
    <message>
        <source>forward pass</source>
        <translation>順伝播</translation>
    </message>
    <message>
        <source>backward pass</source>
        <translation>逆伝播</translation>
    </message>
    <message>
        <source>clipping and optimizer step</source>
        <translation>クリッピングとオプティマイザ</translation>
    </message>
    <message>
        <source>model built</source>
        <translation>モデル構築後</translation>
    </message>
    <message>
        <source>after the model is built</source>
        <translation>モデル構築後</translation>
    </message>
    <message>
        <source>at the peak of this phase</source>
        <translation>この段階のピーク</translation>
    </message>
    <message>
        <source>warning</source>
        <translation>警告</translation>
    </message>
    <message>
        <source>note</source>
        <translation>注記</translation>
    </message>
    <message>
        <source>shown</source>
        <translation>表示</translation>
    </message>
    <message>
        <source>The largest part, %1, is %2.</source>
        <translation>最大の部分は「%1」: %2。</translation>
    </message>
    <message>
        <source>what</source>
        <translation>内容</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>量</translation>
    </message>
    <message>
        <source>standing</source>
        <translation>根拠</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>オプティマイザ</translation>
    </message>
    <message>
        <source>parameters that are updated, at the rate of what updates them</source>
        <translation>更新するパラメータを、更新する装置の速度で数えた値</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>待ち</translation>
    </message>
    <message>
        <source>launches and waiting that nothing hides</source>
        <translation>何にも隠れない起動と待ち</translation>
    </message>
    <message>
        <source>pipeline</source>
        <translation>パイプライン</translation>
    </message>
    <message>
        <source>waiting for other pipeline stages</source>
        <translation>パイプラインの他の段を待つ時間</translation>
    </message>
    <message>
        <source>prompt</source>
        <translation>プロンプト</translation>
    </message>
    <message>
        <source>new tokens</source>
        <translation>新しいトークン</translation>
    </message>
    <message>
        <source>generation</source>
        <translation>生成</translation>
    </message>
    <message>
        <source>scoring</source>
        <translation>採点</translation>
    </message>
    <message>
        <source>actor&apos;s training</source>
        <translation>アクターの学習</translation>
    </message>
    <message>
        <source>critic&apos;s training</source>
        <translation>クリティックの学習</translation>
    </message>
</context>
<context>
    <name>Findings</name>
    <message>
        <source>error</source>
        <translation>エラー</translation>
    </message>
    <message>
        <source>warning</source>
        <translation>警告</translation>
    </message>
    <message>
        <source>note</source>
        <translation>注記</translation>
    </message>
    <message>
        <source>auto</source>
        <translation>auto</translation>
    </message>
    <message>
        <source>becomes %1: %2</source>
        <translation>%1 になる: %2</translation>
    </message>
    <message>
        <source>what</source>
        <translation>内容</translation>
    </message>
    <message>
        <source>key</source>
        <translation>キー</translation>
    </message>
    <message>
        <source>finding</source>
        <translation>所見</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>host</source>
        <translation>ホスト</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>time %1%2 %</source>
        <translation>時間 %1%2 %</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>なし</translation>
    </message>
    <message>
        <source> (line %1)</source>
        <translation>(%1 行目)</translation>
    </message>
    <message>
        <source>The key as it is, against being without it: %1</source>
        <translation>このキーがない場合との差: %1</translation>
    </message>
    <message>
        <source>Fix: %1</source>
        <translation>対処: %1</translation>
    </message>
    <message>
        <source>Source: %1 [%2]</source>
        <translation>出典: %1 [%2]</translation>
    </message>
    <message>
        <source>cost</source>
        <translation>コスト</translation>
    </message>
    <message>
        <source>%1; without it: off</source>
        <translation>%1。ない場合: オフ</translation>
    </message>
    <message>
        <source>%1; without it: %2</source>
        <translation>%1。ない場合: %2</translation>
    </message>
    <message>
        <source>It cannot be left out: %1</source>
        <translation>省略できません: %1</translation>
    </message>
    <message>
        <source>%1; as it is: %2 of each GPU</source>
        <translation>%1。現状: 各 GPU %2</translation>
    </message>
    <message>
        <source>costs</source>
        <translation>コスト</translation>
    </message>
    <message>
        <source>%1, %2, %3</source>
        <translation>%1、%2、%3</translation>
    </message>
    <message>
        <source>1 error</source>
        <translation>エラー 1 件</translation>
    </message>
    <message>
        <source>%1 errors</source>
        <translation>エラー %1 件</translation>
    </message>
    <message>
        <source>1 warning</source>
        <translation>警告 1 件</translation>
    </message>
    <message>
        <source>%1 warnings</source>
        <translation>警告 %1 件</translation>
    </message>
    <message>
        <source>1 note</source>
        <translation>注記 1 件</translation>
    </message>
    <message>
        <source>%1 notes</source>
        <translation>注記 %1 件</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>Fixes</name>
    <message>
        <source>%1 → %2 of each GPU</source>
        <translation>各 GPU %1 → %2</translation>
    </message>
    <message>
        <source>, %1 of each host</source>
        <translation>、各ホスト %1</translation>
    </message>
    <message>
        <source>; about as fast</source>
        <translation>。速さはほぼ同じ</translation>
    </message>
    <message>
        <source>; %1× the time for each token</source>
        <translation>。トークンあたりの時間は %1 倍</translation>
    </message>
    <message>
        <source>finding what would help…</source>
        <translation>有効な変更を探しています…</translation>
    </message>
    <message>
        <source>Nothing in this plan needs to be made lighter.</source>
        <translation>この計画で軽くすべきものはありません。</translation>
    </message>
    <message>
        <source>Nothing in this plan can be made lighter: it takes more GPUs or a smaller model.</source>
        <translation>この計画でこれ以上軽くできるものはありません。GPU を増やすか、モデルを小さくしてください。</translation>
    </message>
</context>
<context>
    <name>JobWords</name>
    <message>
        <source>%1 (%2 parameters)</source>
        <translation>%1(パラメータ数 %2)</translation>
    </message>
    <message>
        <source>%1 on %2</source>
        <translation>%1、%2</translation>
    </message>
    <message>
        <source>%1 of %2 on %3</source>
        <translation>%1: %2、%3</translation>
    </message>
    <message>
        <source>tensor %1</source>
        <translation>テンソル %1</translation>
    </message>
    <message>
        <source>pipeline %1</source>
        <translation>パイプライン %1</translation>
    </message>
    <message>
        <source>sequence %1</source>
        <translation>シーケンス %1</translation>
    </message>
    <message>
        <source>context %1</source>
        <translation>コンテキスト %1</translation>
    </message>
    <message>
        <source>data %1</source>
        <translation>データ %1</translation>
    </message>
    <message>
        <source>, %1 chunks a stage</source>
        <translation>、段あたり %1 チャンク</translation>
    </message>
    <message>
        <source>, experts over %1</source>
        <translation>、エキスパートを %1 GPU に分割</translation>
    </message>
    <message>
        <source>LoRA of rank %1</source>
        <translation>LoRA(ランク %1)</translation>
    </message>
    <message>
        <source>full fine-tuning</source>
        <translation>全パラメータの学習</translation>
    </message>
    <message>
        <source>%1 with %2, %3, %4; micro-batch %5 × %6 tokens</source>
        <translation>%1、%2、%3、%4。マイクロバッチ %5 × %6 トークン</translation>
    </message>
    <message>
        <source>, %1 accumulation steps</source>
        <translation>、勾配累積 %1 回</translation>
    </message>
    <message>
        <source>, every block checkpointed</source>
        <translation>、全ブロックをチェックポイント</translation>
    </message>
    <message>
        <source>, selective checkpointing</source>
        <translation>、選択的チェックポイント</translation>
    </message>
    <message>
        <source>, no activation checkpointing</source>
        <translation>、チェックポイントなし</translation>
    </message>
    <message>
        <source>, eager attention</source>
        <translation>、eager アテンション</translation>
    </message>
    <message>
        <source>, fused attention</source>
        <translation>、融合アテンション</translation>
    </message>
    <message>
        <source>, %1</source>
        <translation>、%1</translation>
    </message>
    <message>
        <source>inference with DeepSpeed-Inference&apos;s kernels over %1 GPUs</source>
        <translation>DeepSpeed-Inference のカーネルによる推論(GPU %1 基)</translation>
    </message>
    <message>
        <source>ZeRO-Inference, %1</source>
        <translation>ZeRO-Inference、%1</translation>
    </message>
    <message>
        <source>inference with transformers</source>
        <translation>transformers による推論</translation>
    </message>
    <message>
        <source>, fp8 KV cache</source>
        <translation>、fp8 の KV キャッシュ</translation>
    </message>
    <message>
        <source>; %1 × (%2 tokens of prompt + %3 new)</source>
        <translation>。%1 ×(プロンプト %2 + 新規 %3 トークン)</translation>
    </message>
    <message>
        <source>actor</source>
        <translation>アクター</translation>
    </message>
    <message>
        <source>critic</source>
        <translation>クリティック</translation>
    </message>
    <message>
        <source>reference</source>
        <translation>参照モデル</translation>
    </message>
    <message>
        <source>reward model</source>
        <translation>報酬モデル</translation>
    </message>
    <message>
        <source>frozen</source>
        <translation>固定</translation>
    </message>
    <message>
        <source>trained</source>
        <translation>学習</translation>
    </message>
    <message>
        <source>%1: %2, %3 with %4, %5</source>
        <translation>%1: %2、%3、%4、%5</translation>
    </message>
    <message>
        <source>, on the host while idle</source>
        <translation>、待機中はホスト上</translation>
    </message>
    <message>
        <source>micro-batch %1 × %2 tokens</source>
        <translation>マイクロバッチ %1 × %2 トークン</translation>
    </message>
    <message>
        <source>, %1 of them generated, %2 sequences at once</source>
        <translation>、うち %1 を生成、同時に %2 シーケンス</translation>
    </message>
    <message>
        <source>, hybrid engine</source>
        <translation>、ハイブリッドエンジン</translation>
    </message>
    <message>
        <source>; %1 for a billion tokens</source>
        <translation>。10 億トークンあたり %1</translation>
    </message>
    <message>
        <source>; cost: the price of a node is not known</source>
        <translation>。費用: ノードの価格が不明</translation>
    </message>
    <message>
        <source>prompt: about %1, %2 tokens/s; new tokens: about %3, %4 tokens/s, at most %5 at datasheet rates</source>
        <translation>プロンプト: 約 %1、%2 トークン/秒。新しいトークン: 約 %3、%4 トークン/秒(カタログ性能で最大 %5)</translation>
    </message>
    <message>
        <source>not estimated: the GPU&apos;s rates are not known</source>
        <translation>GPU の性能が不明のため見積もっていません</translation>
    </message>
    <message>
        <source>about %1 a step, %2 tokens/s on all GPUs, %3 % of their dense peak</source>
        <translation>1 ステップ約 %1、全 GPU で %2 トークン/秒、密行列ピークの %3 %</translation>
    </message>
    <message>
        <source>about %1 an iteration (%2), %3 tokens/s on all GPUs, %4 % of their dense peak</source>
        <translation>1 反復約 %1(%2)、全 GPU で %3 トークン/秒、密行列ピークの %4 %</translation>
    </message>
</context>
<context>
    <name>MachineFields</name>
    <message>
        <source>given</source>
        <translation>指定</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>不明</translation>
    </message>
    <message>
        <source>%1, by the catalogue:</source>
        <translation>%1 のカタログの出典:</translation>
    </message>
    <message>
        <source>GPUs in a node</source>
        <translation>ノードの GPU 数</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>ノード数</translation>
    </message>
    <message>
        <source>catalogue, not verified</source>
        <translation>カタログ(未確認)</translation>
    </message>
    <message>
        <source>catalogue</source>
        <translation>カタログ</translation>
    </message>
    <message>
        <source>Usable memory of a GPU, GiB</source>
        <translation>GPU の使えるメモリ (GiB)</translation>
    </message>
    <message>
        <source>Its bandwidth, GB/s</source>
        <translation>その帯域幅 (GB/s)</translation>
    </message>
    <message>
        <source>Dense bf16 of a GPU, TFLOP/s</source>
        <translation>GPU の密行列 bf16 (TFLOP/s)</translation>
    </message>
    <message>
        <source>GPU to host, GB/s</source>
        <translation>GPU–ホスト間 (GB/s)</translation>
    </message>
    <message>
        <source>assumed</source>
        <translation>仮定</translation>
    </message>
    <message>
        <source>Between GPUs, GB/s</source>
        <translation>GPU 間 (GB/s)</translation>
    </message>
    <message>
        <source>Between nodes, GB/s a GPU</source>
        <translation>ノード間 (GPU あたり GB/s)</translation>
    </message>
    <message>
        <source>Host memory of a node, GiB</source>
        <translation>ノードのホストメモリ (GiB)</translation>
    </message>
    <message>
        <source>NVMe of a node, GiB</source>
        <translation>ノードの NVMe (GiB)</translation>
    </message>
    <message>
        <source>NVMe reads, GB/s</source>
        <translation>NVMe 読み出し (GB/s)</translation>
    </message>
    <message>
        <source>NVMe writes, GB/s</source>
        <translation>NVMe 書き込み (GB/s)</translation>
    </message>
    <message>
        <source>Price of a node, an hour</source>
        <translation>ノードの時間単価</translation>
    </message>
</context>
<context>
    <name>Messages</name>
    <message>
        <source>; expected %1</source>
        <translation>。期待される値: %1</translation>
    </message>
    <message>
        <source>; did you mean &apos;%1&apos;?</source>
        <translation>。「%1」のことですか?</translation>
    </message>
</context>
<context>
    <name>Provenance</name>
    <message>
        <source>exact: counted from the model and the plan</source>
        <translation>確定: モデルと計画から数えた値</translation>
    </message>
    <message>
        <source>modelled: a closed form, or simulated (docs/memory.md)</source>
        <translation>モデル: 式またはシミュレーション (docs/memory.md)</translation>
    </message>
    <message>
        <source>calibrated: fitted to measurements</source>
        <translation>較正: 実測に当てはめた値</translation>
    </message>
    <message>
        <source>measured: read from a record</source>
        <translation>実測: 記録から読んだ値</translation>
    </message>
    <message>
        <source>assumed: a default</source>
        <translation>仮定: 既定値</translation>
    </message>
    <message>
        <source>%1 at the peak: %2</source>
        <translation>ピーク時の「%1」: %2</translation>
    </message>
    <message>
        <source>%1 parameters, kept on this GPU: %2, which is %3 B for each of them</source>
        <translation>パラメータ %1 個。この GPU に置く量は %2、1 個あたり %3 B</translation>
    </message>
    <message>
        <source>
spread over %1 GPUs, padding included</source>
        <translation>
%1 基の GPU に分割(パディングを含む)</translation>
    </message>
    <message>
        <source>reserved − allocated = %1 − %2: PyTorch&apos;s caching allocator, run over every block of the step</source>
        <translation>予約 − 割り当て = %1 − %2: PyTorch のキャッシングアロケータをステップの全ブロックで実行</translation>
    </message>
    <message>
        <source>a constant of the process</source>
        <translation>プロセスごとの定数</translation>
    </message>
    <message>
        <source>%1&apos;s kernels, and the channels of each communicator (of how many ranks):</source>
        <translation>%1 のカーネルと、各コミュニケータ（ランク数）のチャネル:</translation>
    </message>
    <message>
        <source>alive when the step&apos;s allocations peak, in %1; %2 between steps</source>
        <translation>割り当てがピークになる時点(%1)で生存。ステップ間は %2</translation>
    </message>
    <message>
        <source>reserved %1 + %8 context and %9 %2 = %3
of it allocated: %4; upper bound %5: what a real run is not expected to pass
usable %6 of %7: what a process can allocate</source>
        <translation>予約 %1 + %8 コンテキストと %9 %2 = %3
うち割り当て %4。上限 %5: 実際の実行で超えないと見込む値
使用可能 %6 / %7: プロセスが割り当てられる量</translation>
    </message>
    <message>
        <source>Memory of the fullest GPU, as nvidia-smi shows it</source>
        <translation>最も多く使う GPU のメモリ(nvidia-smi の値)</translation>
    </message>
    <message>
        <source>modelled; usable memory: %1</source>
        <translation>モデル。使えるメモリ: %1</translation>
    </message>
    <message>
        <source>Memory of each host: %1</source>
        <translation>各ホストのメモリ: %1</translation>
    </message>
    <message>
        <source>pageable %1 + pinned %2, of all processes of a node</source>
        <translation>ページング可能 %1 + 固定 %2、ノードの全プロセスの合計</translation>
    </message>
    <message>
        <source>NVMe of each node: %1</source>
        <translation>各ノードの NVMe: %1</translation>
    </message>
    <message>
        <source>what the processes of a node swap out</source>
        <translation>ノードのプロセスが退避する量</translation>
    </message>
    <message>
        <source>Live tensors %1: %2</source>
        <translation>生存テンソル(%1): %2</translation>
    </message>
    <message>
        <source>the step simulated allocation by allocation, %1 turns of growth in all</source>
        <translation>ステップを割り当てごとにシミュレーション。増減の転換点は %1 個</translation>
    </message>
    <message>
        <source>%1 in collectives among %2 GPUs; with ring algorithms each sends %3</source>
        <translation>%2 基の GPU 間の集団通信 %1。リングアルゴリズムで各 GPU が %3 を送る</translation>
    </message>
    <message>
        <source>%1 copied in a step</source>
        <translation>1 ステップに %1 をコピー</translation>
    </message>
    <message>
        <source>Tokens a second</source>
        <translation>毎秒のトークン数</translation>
    </message>
    <message>
        <source>%1 GPUs × micro-batch %2 × %3 tokens × %4 accumulation steps ÷ %5
at datasheet rates, with everything hidden: %6 a step</source>
        <translation>GPU %1 基 × マイクロバッチ %2 × %3 トークン × 勾配累積 %4 回 ÷ %5
公称性能で、すべて隠れる場合: 1 ステップ %6</translation>
    </message>
    <message>
        <source>Time of a step: %1</source>
        <translation>ステップの時間: %1</translation>
    </message>
    <message>
        <source>GPU: %1 − %2 = %3 saved; the whole plan estimated with the change</source>
        <translation>GPU: %1 − %2 = %3 の節約。変更後の計画全体を見積もった値</translation>
    </message>
    <message>
        <source>time: a step of %1 ÷ one of %2, for each token: %3×</source>
        <translation>時間: ステップ %1 ÷ %2、トークンあたり %3 倍</translation>
    </message>
    <message>
        <source>What it sets</source>
        <translation>設定する内容</translation>
    </message>
    <message>
        <source>compute %1 + exposed communication %2 + exposed copies %3 + optimizer %4 + pipeline %5 + idle %6</source>
        <translation>計算 %1 + 隠れない通信 %2 + 隠れないコピー %3 + オプティマイザ %4 + パイプライン %5 + 待ち %6</translation>
    </message>
    <message>
        <source>%1 sequences × %2 new tokens ÷ %3, after %4 for the prompts
at datasheet rates: %5 for the new tokens</source>
        <translation>シーケンス %1 × 新しいトークン %2 ÷ %3(プロンプトに %4 かかった後)
カタログ性能では新しいトークンに %5</translation>
    </message>
    <message>
        <source>data %1 × micro-batch %2 × %3 tokens × %4 accumulation steps ÷ %5
at datasheet rates, with everything hidden: %6 a step</source>
        <translation>データ %1 × マイクロバッチ %2 × %3 トークン × 勾配累積 %4 回 ÷ %5
カタログ性能ですべて隠れた場合: 1 ステップ %6</translation>
    </message>
</context>
<context>
    <name>TrainingFields</name>
    <message>
        <source>Micro-batch</source>
        <translation>マイクロバッチ</translation>
    </message>
    <message>
        <source>Sequence length</source>
        <translation>系列長</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>ZeRO stage</source>
        <translation>ZeRO ステージ</translation>
    </message>
    <message>
        <source>Offload</source>
        <translation>オフロード</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>なし</translation>
    </message>
    <message>
        <source>optimizer to host</source>
        <translation>オプティマイザをホストへ</translation>
    </message>
    <message>
        <source>all to host</source>
        <translation>すべてホストへ</translation>
    </message>
    <message>
        <source>all to NVMe</source>
        <translation>すべて NVMe へ</translation>
    </message>
    <message>
        <source>Checkpointing</source>
        <translation>チェックポイント</translation>
    </message>
    <message>
        <source>none</source>
        <translation>なし</translation>
    </message>
    <message>
        <source>selective</source>
        <translation>選択的</translation>
    </message>
    <message>
        <source>every block</source>
        <translation>全ブロック</translation>
    </message>
    <message>
        <source>Framework</source>
        <translation>フレームワーク</translation>
    </message>
    <message>
        <source>plain PyTorch</source>
        <translation>PyTorch 単体</translation>
    </message>
    <message>
        <source>Method</source>
        <translation>方法</translation>
    </message>
    <message>
        <source>full fine-tuning</source>
        <translation>全パラメータの学習</translation>
    </message>
    <message>
        <source>LoRA rank</source>
        <translation>LoRA のランク</translation>
    </message>
    <message>
        <source>Accumulation steps</source>
        <translation>勾配累積の回数</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>精度</translation>
    </message>
    <message>
        <source>Optimizer</source>
        <translation>オプティマイザ</translation>
    </message>
    <message>
        <source>Attention</source>
        <translation>アテンション</translation>
    </message>
    <message>
        <source>fused (SDPA)</source>
        <translation>融合 (SDPA)</translation>
    </message>
    <message>
        <source>eager</source>
        <translation>eager</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>損失</translation>
    </message>
    <message>
        <source>cross-entropy</source>
        <translation>交差エントロピー</translation>
    </message>
    <message>
        <source>fused with the head</source>
        <translation>出力層と融合</translation>
    </message>
    <message>
        <source>shardplan-validate&apos;s engine</source>
        <translation>shardplan-validate のエンジン</translation>
    </message>
    <message>
        <source>Task</source>
        <translation>種類</translation>
    </message>
    <message>
        <source>training</source>
        <translation>学習</translation>
    </message>
    <message>
        <source>generation</source>
        <translation>生成</translation>
    </message>
    <message>
        <source>reinforcement learning, preferences</source>
        <translation>強化学習・選好学習</translation>
    </message>
    <message>
        <source>Algorithm</source>
        <translation>アルゴリズム</translation>
    </message>
    <message>
        <source>supervised fine-tuning</source>
        <translation>教師ありファインチューニング</translation>
    </message>
    <message>
        <source>reward model</source>
        <translation>報酬モデル</translation>
    </message>
    <message>
        <source>Sequences</source>
        <translation>シーケンス数</translation>
    </message>
    <message>
        <source>Prompt length</source>
        <translation>プロンプト長</translation>
    </message>
    <message>
        <source>New tokens</source>
        <translation>新しいトークン</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>重み</translation>
    </message>
    <message>
        <source>as computed</source>
        <translation>計算と同じ型</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV キャッシュ</translation>
    </message>
    <message>
        <source>Weights are kept</source>
        <translation>重みの置き場所</translation>
    </message>
    <message>
        <source>on the GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>on the host</source>
        <translation>ホスト</translation>
    </message>
    <message>
        <source>on NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>Tensor parallel</source>
        <translation>テンソル並列</translation>
    </message>
    <message>
        <source>Pipeline stages</source>
        <translation>パイプラインの段数</translation>
    </message>
    <message>
        <source>Chunks a stage</source>
        <translation>段あたりのチャンク</translation>
    </message>
    <message>
        <source>Ulysses (sequence)</source>
        <translation>Ulysses(シーケンス)</translation>
    </message>
    <message>
        <source>Context parallel</source>
        <translation>コンテキスト並列</translation>
    </message>
    <message>
        <source>Expert parallel</source>
        <translation>エキスパート並列</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::AccuracyPage</name>
    <message>
        <source>Accuracy</source>
        <translation>予測の精度</translation>
    </message>
    <message>
        <source>Comparing with the records</source>
        <translation>記録と比較中</translation>
    </message>
    <message>
        <source>Errors by framework</source>
        <translation>フレームワーク別の誤差</translation>
    </message>
    <message>
        <source>Records, worst first</source>
        <translation>記録(誤差の大きい順)</translation>
    </message>
    <message>
        <source>Comparing every built-in record with its prediction…</source>
        <translation>内蔵の記録をすべて予測と比較しています…</translation>
    </message>
    <message>
        <source>%1 measured training steps, each against what is predicted for its job. Errors are (predicted − measured) ÷ measured.</source>
        <translation>実測した学習ステップ %1 件を、それぞれのジョブの予測と比べます。誤差は (予測 − 実測) ÷ 実測です。</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::ComparePage</name>
    <message>
        <source>Compare</source>
        <translation>比較</translation>
    </message>
    <message>
        <source>Plans to compare, four at most</source>
        <translation>比較する計画(4 つまで)</translation>
    </message>
    <message>
        <source>&amp;Keep this plan for comparison</source>
        <translation>この計画を比較に残す(&amp;K)</translation>
    </message>
    <message>
        <source>Plans side by side</source>
        <translation>計画の並列比較</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::FieldForm</name>
    <message>
        <source>given</source>
        <translation>指定</translation>
    </message>
    <message>
        <source>ds_config or default</source>
        <translation>ds_config または既定</translation>
    </message>
    <message>
        <source>assumed</source>
        <translation>仮定</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::FixList</name>
    <message>
        <source>Apply</source>
        <translation>適用</translation>
    </message>
    <message>
        <source>Apply: %1</source>
        <translation>適用: %1</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::LintPanel</name>
    <message>
        <source>Findings</source>
        <translation>所見</translation>
    </message>
    <message>
        <source>About the chosen finding</source>
        <translation>選んだ所見について</translation>
    </message>
    <message>
        <source>being checked…</source>
        <translation>確認しています…</translation>
    </message>
    <message>
        <source>Fix &amp;all (%1)</source>
        <translation>すべて修正 (%1)(&amp;A)</translation>
    </message>
    <message>
        <source>Fi&amp;x this</source>
        <translation>これを修正(&amp;X)</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::MachinePage</name>
    <message>
        <source>Machine</source>
        <translation>マシン</translation>
    </message>
    <message>
        <source>4xA100-40GB, 2x8xH100, 4x40GB or p4d.24xlarge</source>
        <translation>4xA100-40GB、2x8xH100、4x40GB、p4d.24xlarge など</translation>
    </message>
    <message>
        <source>Which &amp;machine will it run on?</source>
        <translation>どのマシンで実行しますか(&amp;M)</translation>
    </message>
    <message>
        <source>What is known about it</source>
        <translation>マシンの情報</translation>
    </message>
    <message>
        <source>&amp;This machine: %1 × %2</source>
        <translation>このマシン(&amp;T): %1 × %2</translation>
    </message>
    <message>
        <source>&amp;This machine: no known GPU was found</source>
        <translation>このマシン(&amp;T): 既知の GPU は見つかりません</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Machines to rent</source>
        <translation>クラウドのマシン</translation>
    </message>
    <message>
        <source>Found here: %1 of host memory, %2 of NVMe.</source>
        <translation>このマシン: ホストメモリ %1、NVMe %2。</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::MainWindow</name>
    <message>
        <source>a model&apos;s config.json</source>
        <translation>モデルの config.json</translation>
    </message>
    <message>
        <source>a ds_config.json</source>
        <translation>ds_config.json</translation>
    </message>
    <message>
        <source>‹ &amp;Back</source>
        <translation>‹ 戻る(&amp;B)</translation>
    </message>
    <message>
        <source>&amp;Next ›</source>
        <translation>次へ(&amp;N) ›</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>ファイル(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;New job</source>
        <translation>新しいジョブ(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Open…</source>
        <translation>開く(&amp;O)…</translation>
    </message>
    <message>
        <source>a job or a configuration</source>
        <translation>ジョブまたは設定</translation>
    </message>
    <message>
        <source>&amp;Recent files</source>
        <translation>最近使ったファイル(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Save</source>
        <translation>保存(&amp;S)</translation>
    </message>
    <message>
        <source>Save &amp;as…</source>
        <translation>名前を付けて保存(&amp;A)…</translation>
    </message>
    <message>
        <source>Copy the &amp;command line</source>
        <translation>コマンドラインをコピー(&amp;C)</translation>
    </message>
    <message>
        <source>Ctrl+Shift+C</source>
        <translation>Ctrl+Shift+C</translation>
    </message>
    <message>
        <source>Save a &amp;report…</source>
        <translation>レポートを保存(&amp;R)…</translation>
    </message>
    <message>
        <source>Save a &amp;picture of this page…</source>
        <translation>このページの画像を保存(&amp;P)…</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>終了(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>表示(&amp;V)</translation>
    </message>
    <message>
        <source>Colours of the &amp;system</source>
        <translation>システムの配色(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Light</source>
        <translation>ライト(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Dark</source>
        <translation>ダーク(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Language</source>
        <translation>言語(&amp;L)</translation>
    </message>
    <message>
        <source>none</source>
        <translation>なし</translation>
    </message>
    <message>
        <source>%1[*] – shardplan</source>
        <translation>%1[*] – shardplan</translation>
    </message>
    <message>
        <source>new job</source>
        <translation>新しいジョブ</translation>
    </message>
    <message>
        <source>Open %1</source>
        <translation>%1 を開く</translation>
    </message>
    <message>
        <source>JSON files (*.json);;All files (*)</source>
        <translation>JSON ファイル (*.json);;すべてのファイル (*)</translation>
    </message>
    <message>
        <source>Save the job</source>
        <translation>ジョブを保存</translation>
    </message>
    <message>
        <source>JSON files (*.json)</source>
        <translation>JSON ファイル (*.json)</translation>
    </message>
    <message>
        <source>Unsaved job</source>
        <translation>保存していないジョブ</translation>
    </message>
    <message>
        <source>The job was changed. Save it?</source>
        <translation>ジョブが変更されています。保存しますか?</translation>
    </message>
    <message>
        <source>Save a picture</source>
        <translation>画像を保存</translation>
    </message>
    <message>
        <source>Pictures (*.png)</source>
        <translation>画像 (*.png)</translation>
    </message>
    <message>
        <source>%1 cannot be written</source>
        <translation>%1 に書き込めません</translation>
    </message>
    <message>
        <source>Save a report</source>
        <translation>レポートを保存</translation>
    </message>
    <message>
        <source>Web pages (*.html);;Markdown (*.md);;JSON files (*.json);;Tables (*.csv)</source>
        <translation>ウェブページ (*.html);;Markdown (*.md);;JSON ファイル (*.json);;表 (*.csv)</translation>
    </message>
    <message>
        <source>Wrote %1</source>
        <translation>%1 を書き込みました</translation>
    </message>
    <message>
        <source>Export these files into</source>
        <translation>ファイルの書き出し先</translation>
    </message>
    <message>
        <source>Writing the report</source>
        <translation>レポートを書き込み中</translation>
    </message>
    <message>
        <source>Cancel the report</source>
        <translation>レポートを中止</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::ModelPage</name>
    <message>
        <source>Model</source>
        <translation>モデル</translation>
    </message>
    <message>
        <source>llama-2-7b, 7B, or the path of a config.json</source>
        <translation>llama-2-7b、7B、または config.json のパス</translation>
    </message>
    <message>
        <source>Which &amp;model will be trained?</source>
        <translation>どのモデルを学習しますか(&amp;M)</translation>
    </message>
    <message>
        <source>Open &amp;config.json…</source>
        <translation>config.json を開く(&amp;C)…</translation>
    </message>
    <message>
        <source>Catalogue of models</source>
        <translation>モデルのカタログ</translation>
    </message>
    <message>
        <source>Parameters by group</source>
        <translation>グループ別のパラメータ</translation>
    </message>
    <message>
        <source>What it is made of</source>
        <translation>モデルの構成</translation>
    </message>
    <message>
        <source>Nothing chosen yet.</source>
        <translation>まだ選ばれていません。</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1&lt;/b&gt;: %2 parameters (%3) in %4 tensors</source>
        <translation>&lt;b&gt;%1&lt;/b&gt;: パラメータ %2 個(%3)、テンソル %4 個</translation>
    </message>
    <message>
        <source>&lt;br&gt;%1: %2 layers, hidden size %3, %4 heads (%5 for keys and values), vocabulary %6</source>
        <translation>&lt;br&gt;%1: %2 層、隠れ次元 %3、ヘッド %4(キーと値は %5)、語彙 %6</translation>
    </message>
    <message>
        <source>assumed: %1</source>
        <translation>仮定: %1</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::ParetoPlot</name>
    <message>
        <source>%1 plans</source>
        <translation>計画 %1 件</translation>
    </message>
    <message>
        <source>Each plan that no other beats will be a point here.</source>
        <translation>他のどの計画にも負けない計画が、ここに点として並びます。</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::PlanPage</name>
    <message>
        <source>Plan</source>
        <translation>計画</translation>
    </message>
    <message>
        <source>The files that run this plan</source>
        <translation>この計画を実行するファイル</translation>
    </message>
    <message>
        <source>&amp;Copy the command line</source>
        <translation>コマンドラインをコピー(&amp;C)</translation>
    </message>
    <message>
        <source>Save the &amp;job…</source>
        <translation>ジョブを保存(&amp;J)…</translation>
    </message>
    <message>
        <source>Save a &amp;report…</source>
        <translation>レポートを保存(&amp;R)…</translation>
    </message>
    <message>
        <source>&amp;Export these files…</source>
        <translation>これらのファイルを書き出す(&amp;E)…</translation>
    </message>
    <message>
        <source>Take it along</source>
        <translation>持ち出す</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>探索</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::PlanTable</name>
    <message>
        <source>verdict</source>
        <translation>判定</translation>
    </message>
    <message>
        <source>each GPU</source>
        <translation>各 GPU</translation>
    </message>
    <message>
        <source>upper bound</source>
        <translation>上限</translation>
    </message>
    <message>
        <source>to spare</source>
        <translation>余裕</translation>
    </message>
    <message>
        <source>model states</source>
        <translation>モデル状態</translation>
    </message>
    <message>
        <source>each host</source>
        <translation>各ホスト</translation>
    </message>
    <message>
        <source>NVMe of each node</source>
        <translation>各ノードの NVMe</translation>
    </message>
    <message>
        <source>sent by each GPU in a step</source>
        <translation>各 GPU の 1 ステップの送信量</translation>
    </message>
    <message>
        <source>time of a step</source>
        <translation>1 ステップの時間</translation>
    </message>
    <message>
        <source>tokens a second</source>
        <translation>毎秒のトークン数</translation>
    </message>
    <message>
        <source>differs from the first plan</source>
        <translation>最初の計画と異なる</translation>
    </message>
    <message>
        <source> (this job)</source>
        <translation>(このジョブ)</translation>
    </message>
    <message>
        <source>parameters, gradients and optimizer states between steps</source>
        <translation>ステップ間のパラメータ、勾配、オプティマイザ状態</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::RankBars</name>
    <message>
        <source>GPU %1: %2</source>
        <translation>GPU %1: %2</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::SearchPanel</name>
    <message>
        <source>Plans by memory and time</source>
        <translation>メモリと時間で見た計画</translation>
    </message>
    <message>
        <source>memory of each GPU</source>
        <translation>各 GPU のメモリ</translation>
    </message>
    <message>
        <source>seconds for a million tokens</source>
        <translation>100 万トークンあたりの秒数</translation>
    </message>
    <message>
        <source>&amp;Use the selected plan</source>
        <translation>選んだ計画を使う(&amp;U)</translation>
    </message>
    <message>
        <source>most tokens a second</source>
        <translation>毎秒のトークン数が最大</translation>
    </message>
    <message>
        <source>least money</source>
        <translation>費用が最小</translation>
    </message>
    <message>
        <source>fewest GPUs</source>
        <translation>GPU 数が最小</translation>
    </message>
    <message>
        <source>least memory</source>
        <translation>メモリが最小</translation>
    </message>
    <message>
        <source>What is best</source>
        <translation>何を最良とするか</translation>
    </message>
    <message>
        <source>&amp;Search for the best plans</source>
        <translation>最良の計画を探す(&amp;S)</translation>
    </message>
    <message>
        <source>Ca&amp;ncel</source>
        <translation>中止(&amp;N)</translation>
    </message>
    <message>
        <source>Candidates settled</source>
        <translation>調べ終えた候補</translation>
    </message>
    <message>
        <source>Plans that no other beats</source>
        <translation>他に負けない計画</translation>
    </message>
    <message>
        <source>Plans</source>
        <translation>計画</translation>
    </message>
    <message>
        <source>Ruled out</source>
        <translation>除外</translation>
    </message>
    <message>
        <source>A search varies how one model is trained; this job does something else.</source>
        <translation>探索は 1 つのモデルの学習方法を変えて行います。このジョブは別の種類です。</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::SearchSession</name>
    <message>
        <source>each GPU</source>
        <translation>各 GPU</translation>
    </message>
    <message>
        <source>step</source>
        <translation>ステップ</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>トークン/秒</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>plan</source>
        <translation>計画</translation>
    </message>
    <message>
        <source>candidates</source>
        <translation>候補数</translation>
    </message>
    <message>
        <source>ruled out because</source>
        <translation>除外の理由</translation>
    </message>
    <message>
        <source>%1 candidates; %2 of them are beaten by no other in time, memory and GPUs at once</source>
        <translation>候補 %1 件。うち %2 件は、時間・メモリ・GPU 数のすべてで他に負けません</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::TextLabel</name>
    <message>
        <source>&amp;Copy</source>
        <translation>コピー(&amp;C)</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::TimelineView</name>
    <message>
        <source>, layer %1 of %2</source>
        <translation>、層 %1 / %2</translation>
    </message>
    <message>
        <source>, micro-batch %1 of %2</source>
        <translation>、マイクロバッチ %1 / %2</translation>
    </message>
    <message>
        <source> (the peak)</source>
        <translation>(ピーク)</translation>
    </message>
    <message>
        <source>peak %1</source>
        <translation>ピーク %1</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::TrainingPage</name>
    <message>
        <source>Training</source>
        <translation>学習</translation>
    </message>
    <message>
        <source>How it is trained</source>
        <translation>学習の方法</translation>
    </message>
    <message>
        <source>DeepSpeed configuration</source>
        <translation>DeepSpeed の設定</translation>
    </message>
    <message>
        <source>Open &amp;ds_config.json…</source>
        <translation>ds_config.json を開く(&amp;D)…</translation>
    </message>
    <message>
        <source>&amp;Without it</source>
        <translation>使わない(&amp;W)</translation>
    </message>
    <message>
        <source>None: the choices on the left say it all. Open or drop a file to use it as it is, with what is found in it listed here.</source>
        <translation>なし: 左の選択がすべてです。ファイルを開くかドロップすると、そのまま使い、見つかった点をここに示します。</translation>
    </message>
    <message>
        <source>Inside the job, with %1 keys at its top level.</source>
        <translation>ジョブの中にあり、最上位のキーは %1 個です。</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::VerdictPage</name>
    <message>
        <source>Verdict</source>
        <translation>判定</translation>
    </message>
    <message>
        <source>Memory of the fullest GPU</source>
        <translation>最も多く使う GPU のメモリ</translation>
    </message>
    <message>
        <source>Memory through the step</source>
        <translation>ステップ中のメモリ</translation>
    </message>
    <message>
        <source>Memory of each GPU at its peak, and live tensors through the step</source>
        <translation>ピーク時の各 GPU のメモリと、ステップ中の生存テンソル</translation>
    </message>
    <message>
        <source>Time of a step</source>
        <translation>1 ステップの時間</translation>
    </message>
    <message>
        <source>What if</source>
        <translation>もし変えたら</translation>
    </message>
    <message>
        <source>Fixes</source>
        <translation>変更案</translation>
    </message>
    <message>
        <source>live tensors</source>
        <translation>生存テンソル</translation>
    </message>
    <message>
        <source>peak</source>
        <translation>ピーク</translation>
    </message>
    <message>
        <source>at its end</source>
        <translation>終了時</translation>
    </message>
    <message>
        <source>sent</source>
        <translation>送信</translation>
    </message>
    <message>
        <source>link</source>
        <translation>経路</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>量</translation>
    </message>
    <message>
        <source>calls</source>
        <translation>回数</translation>
    </message>
    <message>
        <source>standing</source>
        <translation>根拠</translation>
    </message>
    <message>
        <source>what</source>
        <translation>内容</translation>
    </message>
    <message>
        <source>Parts</source>
        <translation>内訳</translation>
    </message>
    <message>
        <source>Phases</source>
        <translation>段階</translation>
    </message>
    <message>
        <source>Traffic</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>Rests on</source>
        <translation>根拠</translation>
    </message>
    <message>
        <source>usable %1</source>
        <translation>使用可能 %1</translation>
    </message>
</context>
</TS>
